// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// A message whose transaction ends as Local says, and as Check says when the broker asks: commit,
// rollback or unknown.
type transactional struct {
	Body  string `json:"body"`
	Local string `json:"local"`
	Check string `json:"check"`
}

type listener struct {
	checks atomic.Int32
}

func state(word string) primitive.LocalTransactionState {
	switch word {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	default:
		return unknownState
	}
}

func (l *listener) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return state(m.GetProperty("local"))
}

func (l *listener) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	report(map[string]any{"event": "check", "body": string(m.Body), "topic": m.Topic})
	l.checks.Add(1)
	return state(m.GetProperty("check"))
}

// transact sends messages in transactions, and ends when as many questions as there are in Count
// have been answered.
func transact(given command) error {
	answers := &listener{}
	client, err := rocketmq.NewTransactionProducer(
		answers,
		producer.WithNameServer(primitive.NamesrvAddr{given.Namesrv}),
		producer.WithGroupName(given.Group),
		producer.WithInstanceName("go-"+given.Group),
	)
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	for _, each := range given.Messages {
		m := primitive.NewMessage(given.Topic, []byte(each.Body))
		m.WithTag("go").WithProperty("local", each.Local)
		m.WithProperty("check", each.Check)
		result, err := client.SendMessageInTransaction(context.Background(), m)
		if err != nil {
			return err
		}
		report(map[string]any{
			"event":  "sent",
			"status": int(result.Status),
			"state":  int(result.State),
			"msg_id": result.MsgID,
		})
	}
	for int(answers.checks.Load()) < given.Count {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(time.Second) // until the last answer is sent
	return client.Shutdown()
}

// ask sends requests and reports the replies.
// replied asks again when no reply comes: a broker knows where to send a reply only after the
// first heartbeat of whoever asks, which this client sends a second after its start.
func replied(asking rocketmq.Producer, topic string, body string) (*primitive.Message, error) {
	var reply *primitive.Message
	var err error
	for attempt := 0; attempt < 6; attempt++ {
		m := primitive.NewMessage(topic, []byte(body))
		reply, err = asking.Request(context.Background(), 10*time.Second, m)
		if err == nil {
			break
		}
	}
	return reply, err
}

func ask(given command) error {
	asking, err := rocketmq.NewProducer(
		producer.WithNameServer(primitive.NamesrvAddr{given.Namesrv}),
		producer.WithGroupName(given.Group),
		producer.WithInstanceName("go-"+given.Group),
	)
	if err != nil {
		return err
	}
	if err := asking.Start(); err != nil {
		return err
	}
	for n := 0; n < given.Count; n++ {
		reply, err := replied(asking, given.Topic, fmt.Sprintf("go-%d", n))
		if err != nil {
			return err
		}
		report(map[string]any{"event": "reply", "body": string(reply.Body)})
	}
	return asking.Shutdown()
}

// answer replies to as many requests as there are in Count.
func answer(given command) error {
	replies, err := rocketmq.NewProducer(
		producer.WithNameServer(primitive.NamesrvAddr{given.Namesrv}),
		producer.WithGroupName(given.Group+"-replies"),
		producer.WithInstanceName("go-replies-"+given.Group),
	)
	if err != nil {
		return err
	}
	if err := replies.Start(); err != nil {
		return err
	}
	answering, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer(primitive.NamesrvAddr{given.Namesrv}),
		consumer.WithGroupName(given.Group),
		consumer.WithInstance("go-"+given.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	if err != nil {
		return err
	}
	outcomes := make(chan error, given.Count)
	err = answering.Subscribe(given.Topic, consumer.MessageSelector{}, func(
		_ context.Context, messages ...*primitive.MessageExt,
	) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			reply, err := consumer.CreateReplyMessage(m, nil)
			if err == nil {
				reply.Body = append([]byte("re: "), m.Body...) // the client takes a body for properties
				_, err = replies.SendSync(context.Background(), reply)
			}
			outcomes <- err
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	if err := answering.Start(); err != nil {
		return err
	}
	for n := 0; n < given.Count; n++ {
		if err := <-outcomes; err != nil {
			return err
		}
		report(map[string]any{"event": "replied"})
	}
	_ = replies.Shutdown()
	return answering.Shutdown()
}
