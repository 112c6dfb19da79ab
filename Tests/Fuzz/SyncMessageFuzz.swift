// Fuzz entry of what a stream's followers write on their socket, its first message with a token included: what is read
// is the same when it is written and read again.
// Seeds: Messages/*sync.txt

import Gateway
import HTTP

func fuzzSyncMessage(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        if let message = TokenMessage(.text(text)) {
            let again = #"{"type":"token","token":\#(quoted(message.token))}"#
            // Escapes may make it longer than a message may be.
            if again.utf8.count <= text.utf8.count, TokenMessage(.text(again))?.token != message.token {
                fatalError("another token when it is written: \(again)")
            }
        }
        guard let message = SyncMessage(parsing: text) else { continue }
        guard text.utf8.count <= SyncMessage.longest else { fatalError("\(text.utf8.count) bytes") }
        let again: String?
        switch message {
        case .session(let id): again = #"{"type":"session","id":\#(quoted(id))}"#
        case .command(let command): again = written(command)
        }
        guard let again else { fatalError("\(message) is no follower's") }
        guard again.utf8.count > SyncMessage.longest || SyncMessage(parsing: again) == message else {
            fatalError("\(message) is something else when it is written: \(again)")
        }
    }
}
