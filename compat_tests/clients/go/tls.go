// SPDX-License-Identifier: Apache-2.0

//go:build tls

// No release has encrypted connections yet; tls.mod names a commit that has them. This file and
// plain.go have what is not the same in both.

package main

import (
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const unknownState = primitive.UnkonwnState

func producerOptions(given command) []producer.Option {
	return []producer.Option{producer.WithTls(given.Tls)}
}

func consumerOptions(given command) []consumer.Option {
	return []consumer.Option{consumer.WithTls(given.Tls)}
}
