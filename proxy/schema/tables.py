# SPDX-License-Identifier: Apache-2.0
"""The fields of all messages of apache.rocketmq.v2: their numbers, types and names.

A message is a name and, indented below it, a line for each field: `NUMBER TYPE NAME`. After the
type, `?` means that presence is known (optional) and `*` that there may be many (repeated); `map`
is a map of strings to strings. `in NAME` makes a field one of a choice (oneof). Duration and
Timestamp are those of google.protobuf.

Java: the classes of org.apache.rocketmq:rocketmq-proto.
"""

from __future__ import annotations

from typing import Final

FIELDS: Final = """
FilterExpression
    1 FilterType type
    2 string expression
RetryPolicy
    1 int32 max_attempts
    2 ExponentialBackoff exponential_backoff in strategy
    3 CustomizedBackoff customized_backoff in strategy
ExponentialBackoff
    1 Duration initial
    2 Duration max
    3 float multiplier
CustomizedBackoff
    1 Duration* next
Resource
    1 string resource_namespace
    2 string name
SubscriptionEntry
    1 Resource topic
    2 FilterExpression expression
Address
    1 string host
    2 int32 port
Endpoints
    1 AddressScheme scheme
    2 Address* addresses
Broker
    1 string name
    2 int32 id
    3 Endpoints endpoints
MessageQueue
    1 Resource topic
    2 int32 id
    3 Permission permission
    4 Broker broker
    5 MessageType* accept_message_types
Digest
    1 DigestType type
    2 string checksum
SystemProperties
    1 string? tag
    2 string* keys
    3 string message_id
    4 Digest body_digest
    5 Encoding body_encoding
    6 MessageType message_type
    7 Timestamp born_timestamp
    8 string born_host
    9 Timestamp? store_timestamp
    10 string store_host
    11 Timestamp? delivery_timestamp
    12 string? receipt_handle
    13 int32 queue_id
    14 int64? queue_offset
    15 Duration? invisible_duration
    16 int32? delivery_attempt
    17 string? message_group
    18 string? trace_context
    19 Duration? orphaned_transaction_recovery_duration
    20 DeadLetterQueue? dead_letter_queue
    21 string? lite_topic
    22 int32? priority
DeadLetterQueue
    1 string topic
    2 string message_id
Message
    1 Resource topic
    2 map user_properties
    3 SystemProperties system_properties
    4 bytes body
Assignment
    1 MessageQueue message_queue
Status
    1 Code code
    2 string message
UA
    1 Language language
    2 string version
    3 string platform
    4 string hostname
Settings
    1 ClientType? client_type
    2 Endpoints? access_point
    3 RetryPolicy? backoff_policy
    4 Duration? request_timeout
    5 Publishing publishing in pub_sub
    6 Subscription subscription in pub_sub
    7 UA user_agent
    8 Metric metric
    9 map client_properties
Publishing
    1 Resource* topics
    2 int32 max_body_size
    3 bool validate_message_type
Subscription
    1 Resource? group
    2 SubscriptionEntry* subscriptions
    3 bool? fifo
    4 int32? receive_batch_size
    5 Duration? long_polling_timeout
    6 int32? lite_subscription_quota
    7 int32? max_lite_topic_size
Metric
    1 bool on
    2 Endpoints? endpoints
OffsetOption
    1 Policy policy in offset_type
    2 int64 offset in offset_type
    3 int64 tail_n in offset_type
    4 int64 timestamp in offset_type
QueryRouteRequest
    1 Resource topic
    2 Endpoints endpoints
QueryRouteResponse
    1 Status status
    2 MessageQueue* message_queues
SendMessageRequest
    1 Message* messages
SendResultEntry
    1 Status status
    2 string message_id
    3 string transaction_id
    4 int64 offset
    5 string recall_handle
SendMessageResponse
    1 Status status
    2 SendResultEntry* entries
QueryAssignmentRequest
    1 Resource topic
    2 Resource group
    3 Endpoints endpoints
QueryAssignmentResponse
    1 Status status
    2 Assignment* assignments
ReceiveMessageRequest
    1 Resource group
    2 MessageQueue message_queue
    3 FilterExpression filter_expression
    4 int32 batch_size
    5 Duration? invisible_duration
    6 bool auto_renew
    7 Duration? long_polling_timeout
    8 string? attempt_id
ReceiveMessageResponse
    1 Status status in content
    2 Message message in content
    3 Timestamp delivery_timestamp in content
AckMessageEntry
    1 string message_id
    2 string receipt_handle
    3 string? lite_topic
AckMessageRequest
    1 Resource group
    2 Resource topic
    3 AckMessageEntry* entries
AckMessageResultEntry
    1 string message_id
    2 string receipt_handle
    3 Status status
AckMessageResponse
    1 Status status
    2 AckMessageResultEntry* entries
ForwardMessageToDeadLetterQueueRequest
    1 Resource group
    2 Resource topic
    3 string receipt_handle
    4 string message_id
    5 int32 delivery_attempt
    6 int32 max_delivery_attempts
    7 string? lite_topic
ForwardMessageToDeadLetterQueueResponse
    1 Status status
HeartbeatRequest
    1 Resource? group
    2 ClientType client_type
HeartbeatResponse
    1 Status status
EndTransactionRequest
    1 Resource topic
    2 string message_id
    3 string transaction_id
    4 TransactionResolution resolution
    5 TransactionSource source
    6 string trace_context
EndTransactionResponse
    1 Status status
PrintThreadStackTraceCommand
    1 string nonce
ReconnectEndpointsCommand
    1 string nonce
ThreadStackTrace
    1 string nonce
    2 string? thread_stack_trace
VerifyMessageCommand
    1 string nonce
    2 Message message
VerifyMessageResult
    1 string nonce
RecoverOrphanedTransactionCommand
    1 Message message
    2 string transaction_id
NotifyUnsubscribeLiteCommand
    1 string lite_topic
TelemetryCommand
    1 Status? status
    2 Settings settings in command
    3 ThreadStackTrace thread_stack_trace in command
    4 VerifyMessageResult verify_message_result in command
    5 RecoverOrphanedTransactionCommand recover_orphaned_transaction_command in command
    6 PrintThreadStackTraceCommand print_thread_stack_trace_command in command
    7 VerifyMessageCommand verify_message_command in command
    8 ReconnectEndpointsCommand reconnect_endpoints_command in command
    9 NotifyUnsubscribeLiteCommand notify_unsubscribe_lite_command in command
NotifyClientTerminationRequest
    1 Resource? group
NotifyClientTerminationResponse
    1 Status status
ChangeInvisibleDurationRequest
    1 Resource group
    2 Resource topic
    3 string receipt_handle
    4 Duration invisible_duration
    5 string message_id
    6 string? lite_topic
    7 bool? suspend
ChangeInvisibleDurationResponse
    1 Status status
    2 string receipt_handle
PullMessageRequest
    1 Resource group
    2 MessageQueue message_queue
    3 int64 offset
    4 int32 batch_size
    5 FilterExpression filter_expression
    6 Duration long_polling_timeout
PullMessageResponse
    1 Status status in content
    2 Message message in content
    3 int64 next_offset in content
UpdateOffsetRequest
    1 Resource group
    2 MessageQueue message_queue
    3 int64 offset
UpdateOffsetResponse
    1 Status status
GetOffsetRequest
    1 Resource group
    2 MessageQueue message_queue
GetOffsetResponse
    1 Status status
    2 int64 offset
QueryOffsetRequest
    1 MessageQueue message_queue
    2 QueryOffsetPolicy query_offset_policy
    3 Timestamp? timestamp
QueryOffsetResponse
    1 Status status
    2 int64 offset
RecallMessageRequest
    1 Resource topic
    2 string recall_handle
RecallMessageResponse
    1 Status status
    2 string message_id
SyncLiteSubscriptionRequest
    1 LiteSubscriptionAction action
    2 Resource topic
    3 Resource group
    4 string* lite_topic_set
    5 int64? version
    6 OffsetOption? offset_option
SyncLiteSubscriptionResponse
    1 Status status
"""
