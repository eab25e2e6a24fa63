// SPDX-License-Identifier: Apache-2.0

// Sends messages with Apache's gRPC client for Go, and receives them with a simple consumer, as a
// JSON command in the first argument says. Prints a JSON object for each event.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

type command struct {
	Endpoints string `json:"endpoints"`
	Topic     string `json:"topic"`
	Group     string `json:"group"`
	Count     int    `json:"count"`
	TLS       bool   `json:"tls"`
	Fifo      bool   `json:"fifo"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
	// A file that is made before the second half is sent, and waited for until it is gone.
	Pause string `json:"pause"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func report(name, value string) {
	line, err := json.Marshal(map[string]string{name: value})
	check(err)
	fmt.Println(string(line))
}

func pause(path string) {
	check(os.WriteFile(path, nil, 0o600))
	for {
		if _, err := os.Stat(path); err != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Sends a message, and again as long as an error may be one of a proxy that comes back.
func send(producer rmq.Producer, message *rmq.Message, attempts int) []*rmq.SendReceipt {
	for {
		receipts, err := producer.Send(context.Background(), message)
		if err == nil {
			return receipts
		}
		attempts--
		if attempts <= 0 {
			check(err)
		}
		time.Sleep(time.Second)
	}
}

func main() {
	var its command
	check(json.Unmarshal([]byte(os.Args[1]), &its))
	rmq.EnableSsl = its.TLS
	rmq.ResetLogger()
	config := &rmq.Config{
		Endpoint: its.Endpoints, ConsumerGroup: its.Group,
		Credentials: &credentials.SessionCredentials{
			AccessKey: its.AccessKey, AccessSecret: its.SecretKey,
		},
	}
	all := map[string]*rmq.FilterExpression{its.Topic: rmq.SUB_ALL}
	consumer, err := rmq.NewSimpleConsumer(config, rmq.WithSimpleAwaitDuration(5*time.Second),
		rmq.WithSimpleSubscriptionExpressions(all))
	check(err)
	check(consumer.Start())
	producer, err := rmq.NewProducer(config, rmq.WithTopics(its.Topic))
	check(err)
	check(producer.Start())
	for number := 0; number < its.Count; number++ {
		message := &rmq.Message{Topic: its.Topic, Body: []byte(fmt.Sprint("go-", number))}
		message.SetTag("tag")
		message.SetKeys("key")
		if its.Fifo {
			message.SetMessageGroup("one")
		}
		attempts := 1
		if its.Pause != "" {
			attempts = 30
			if number == its.Count/2 {
				pause(its.Pause)
			}
		}
		report("sent", send(producer, message, attempts)[0].MessageID)
	}
	for got := 0; got < its.Count; {
		messages, err := consumer.Receive(context.Background(), 16, 30*time.Second)
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // that there is nothing is an error as well
		}
		for _, message := range messages {
			check(consumer.Ack(context.Background(), message))
			report("body", string(message.GetBody()))
			got++
		}
	}
	check(producer.GracefulStop())
	check(consumer.GracefulStop())
}
