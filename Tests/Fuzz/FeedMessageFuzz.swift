// Fuzz entry of what the feed's viewers write, on a session's control channel and on a follower's socket: a message
// that is read is the same when it is written and read again, and names no more streams than one may.
// Seeds: Messages/*feed.txt

import Base
import Gateway
import HTTP
import Node
import StoryFeed
import Wire

func fuzzFeedMessage(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    var allowance = WatchAllowance(at: .zero)
    var taken = 0
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        if let control = FeedControl(parsing: .binary(Array(line))) { check(control) }
        guard let news = FeedNews(.text(text)) else { continue }
        check(news)
        let streams = allowance.take(news.streams, at: .zero)
        taken += streams.count
        guard Set(streams).count == streams.count, Set(streams).isSubset(of: news.streams),
            taken <= WatchAllowance.burst
        else { fatalError("more streams than one may name, or one twice") }
    }
}

private func check(_ control: FeedControl) {
    let text: String
    switch control {
    case .ping: text = #"{"type":"ping"}"#
    case .prefer(let patch):
        check(patch)
        return
    case .message(let message, let request): text = written(message, request)
    }
    guard FeedControl(parsing: DataChannelMessage(text)) == control else {
        fatalError("\(control) is something else when it is written: \(text)")
    }
}

private func check(_ news: FeedNews) {
    let streams = news.streams.map { quoted($0) }.joined(separator: ",")
    let text = #"{"type":"watch","streams":[\#(streams)]}"#
    guard FeedNews(.text(text))?.streams == news.streams else {
        fatalError("other streams when they are written: \(text)")
    }
}

private func written(_ message: FeedMessage, _ request: UInt32?) -> String {
    var members = ["\"type\":\(quoted(message.kind.rawValue))"]
    if let stream = message.stream { members.append("\"stream\":\(quoted(stream))") }
    switch message {
    case .peek(_, let direction?): members.append("\"direction\":\(quoted(direction.rawValue))")
    case .focus(_, let ahead?): members.append("\"ahead\":\(quoted(ahead))")
    case .peek, .focus, .release: break
    }
    if let request { members.append("\"request\":\(request)") }
    return "{\(members.joined(separator: ","))}"
}
