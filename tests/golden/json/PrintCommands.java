// SPDX-License-Identifier: Apache-2.0

import java.util.Base64;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.SerializeType;

/** Prints commands in both serializations: a name, the serialization, the frame in base64. */
public class PrintCommands {
    public static void main(String[] args) {
        for (SerializeType type : SerializeType.values()) {
            RemotingCommand request = RemotingCommand.createRequestCommand(34, null);
            print("bare", type, request, 7);
            request = RemotingCommand.createRequestCommand(105, null);
            request.addExtField("topic", "Topic\u00e9\u4e2d\ud83d\ude00\"\\/\n");
            request.addExtField("empty", "");
            request.setBody(new byte[] {1, 2, 3});
            request.markOnewayRPC();
            print("fields", type, request, 2147483647);
            RemotingCommand response = RemotingCommand.createResponseCommand(17, "No topic\n <here>");
            response.setLanguage(LanguageCode.CPP);
            response.markResponseType();
            print("answer", type, response, -5);
        }
    }

    private static void print(String name, SerializeType type, RemotingCommand command, int opaque) {
        command.setSerializeTypeCurrentRPC(type);
        command.setOpaque(opaque);
        System.out.println(name + "\t" + type + "\t" + Base64.getEncoder().encodeToString(command.encode().array()));
    }
}
