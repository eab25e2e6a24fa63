// SPDX-License-Identifier: Apache-2.0

// Apache's Go client, told by one JSON object on standard input what to do; each event is one JSON
// line on standard output.
//
//	{"op": "produce", "namesrv": A, "topic": T, "count": N}  sends N messages, singly and as a batch;
//	    with "queues": N it believes that a topic it has made has N of them, and not 4
//	{"op": "consume", "namesrv": A, "topic": T, "group": G, "expression": E, "count": N};
//	    with "type": "SQL92" the expression is no list of tags
//	    both of them sign with "access_key": K and "secret_key": S
//	    both of them encrypt with "tls": true, if the program was built with the tag tls
//	{"op": "transact", "namesrv": A, "topic": T, "group": G, "messages": [...], "count": N}
//	{"op": "ask", "namesrv": A, "topic": T, "group": G, "count": N}
//	{"op": "answer", "namesrv": A, "topic": T, "group": G, "count": N}
//	{"op": "load", "namesrv": A, "topic": T, "load": {"threads": N, "warmup-ms": N, ...}}
//
// consume ends when it has received N messages, or when standard input is closed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type command struct {
	Op         string `json:"op"`
	Namesrv    string `json:"namesrv"`
	Topic      string `json:"topic"`
	Group      string `json:"group"`
	Expression string `json:"expression"`
	Type       string `json:"type"`
	Count      int    `json:"count"`
	Queues     int    `json:"queues"`
	Tls        bool   `json:"tls"`
	AccessKey  string `json:"access_key"`
	SecretKey  string `json:"secret_key"`
	Load       load   `json:"load"`

	Messages []transactional `json:"messages"`
}

func (given command) credentials() primitive.Credentials {
	return primitive.Credentials{AccessKey: given.AccessKey, SecretKey: given.SecretKey}
}

var output sync.Mutex

func report(event map[string]any) {
	output.Lock()
	defer output.Unlock()
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func main() {
	rlog.SetLogLevel("warn")
	input := json.NewDecoder(os.Stdin)
	var given command
	err := input.Decode(&given)
	if err == nil {
		switch given.Op {
		case "produce":
			err = produce(given)
		case "consume":
			err = consume(given)
		case "transact":
			err = transact(given)
		case "ask":
			err = ask(given)
		case "answer":
			err = answer(given)
		case "load":
			err = measure(given)
		default:
			err = fmt.Errorf("no such operation: %q", given.Op)
		}
	}
	if err != nil {
		report(map[string]any{"event": "error", "error": err.Error()})
		os.Exit(1)
	}
}

func produce(given command) error {
	options := []producer.Option{
		producer.WithNameServer(primitive.NamesrvAddr{given.Namesrv}),
		producer.WithGroupName("go-producers"),
		producer.WithInstanceName("go-" + given.Topic),
		producer.WithRetry(2),
	}
	if given.Queues > 0 {
		options = append(options, producer.WithDefaultTopicQueueNums(given.Queues))
	}
	if given.AccessKey != "" {
		options = append(options, producer.WithCredentials(given.credentials()))
	}
	client, err := rocketmq.NewProducer(append(options, producerOptions(given)...)...)
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer client.Shutdown()
	single := given.Count / 2
	for n := 0; n < single; n++ {
		if err := send(client, message(given.Topic, n)); err != nil {
			return err
		}
	}
	var batch []*primitive.Message
	for n := single; n < given.Count; n++ {
		batch = append(batch, message(given.Topic, n))
	}
	return send(client, batch...)
}

func message(topic string, number int) *primitive.Message {
	m := primitive.NewMessage(topic, []byte(fmt.Sprintf("go-%d", number)))
	m.WithTag("go").WithKeys([]string{fmt.Sprintf("key-%d", number)})
	m.WithProperty("number", fmt.Sprint(number))
	m.WithProperty("größe", "漢字")
	return m
}

func send(client rocketmq.Producer, messages ...*primitive.Message) error {
	result, err := client.SendSync(context.Background(), messages...)
	if err != nil {
		return err
	}
	report(map[string]any{
		"event":         "sent",
		"status":        int(result.Status),
		"count":         len(messages),
		"msg_id":        result.MsgID,
		"offset_msg_id": result.OffsetMsgID,
		"queue_id":      result.MessageQueue.QueueId,
		"queue_offset":  result.QueueOffset,
	})
	return nil
}

func consume(given command) error {
	options := []consumer.Option{
		consumer.WithNameServer(primitive.NamesrvAddr{given.Namesrv}),
		consumer.WithGroupName(given.Group),
		consumer.WithInstance("go-" + given.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}
	if given.AccessKey != "" {
		options = append(options, consumer.WithCredentials(given.credentials()))
	}
	client, err := rocketmq.NewPushConsumer(append(options, consumerOptions(given)...)...)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	received := 0
	var mutex sync.Mutex
	filter := consumer.MessageSelector{Type: consumer.TAG, Expression: given.Expression}
	if given.Type == "SQL92" {
		filter.Type = consumer.SQL92
	}
	err = client.Subscribe(given.Topic, filter, func(
		_ context.Context, messages ...*primitive.MessageExt,
	) (consumer.ConsumeResult, error) {
		mutex.Lock()
		defer mutex.Unlock()
		for _, m := range messages {
			report(map[string]any{
				"event":        "message",
				"body":         string(m.Body),
				"tags":         m.GetTags(),
				"keys":         m.GetKeys(),
				"properties":   m.GetProperties(),
				"msg_id":       m.MsgId,
				"queue_id":     m.Queue.QueueId,
				"queue_offset": m.QueueOffset,
			})
			if received++; received == given.Count {
				close(done)
			}
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	<-done
	return client.Shutdown()
}
