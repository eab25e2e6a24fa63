// SPDX-License-Identifier: Apache-2.0

//go:build !tls

package main

import (
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const unknownState = primitive.UnknowState

func producerOptions(command) []producer.Option { return nil }

func consumerOptions(command) []consumer.Option { return nil }
