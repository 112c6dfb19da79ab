// Fuzz entry of what a stage's clients write on their control channel: a request that is read is the same when it is
// written and read again, and preferences lie within their bounds.
// Seeds: Messages/*control.txt

import Base
import Forwarding
import Node
import Wire

func fuzzControlMessage(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let message = DataChannelMessage.binary(Array(line))
        guard let request = ControlRequest(parsing: message) else { continue }
        guard ControlRequest(parsing: .string(Array(line))) == request else {
            fatalError("a message in text is another than in bytes")
        }
        if case .prefer(let patch) = request {
            check(patch)
            // Of the feed's other members some have other types, so it may refuse the message.
            if let control = FeedControl(parsing: message), control != .prefer(patch) {
                fatalError("the feed takes \(patch) for \(control)")
            }
            continue
        }
        guard let text = written(request) else { fatalError("\(request) is no client's") }
        guard ControlRequest(parsing: DataChannelMessage(text)) == request else {
            fatalError("\(request) is something else when it is written: \(text)")
        }
    }
}

/// A second time changes nothing, and an absurd height is none.
func check(_ patch: DeliveryPatch) {
    for old in [DeliveryPreferences(), DeliveryPreferences(maximumHeight: 90, pin: .low, isAudioOnly: true)] {
        let new = patch.applied(to: old)
        guard patch.applied(to: new) == new else { fatalError("\(patch) changes \(new) again") }
        guard new.maximumHeight.map({ (1...DeliveryPatch.greatestHeight).contains($0) }) ?? true else {
            fatalError("\(patch) makes \(new)")
        }
    }
}

private func written(_ request: ControlRequest) -> String? {
    func height(_ pixels: Int?) -> String { pixels.map { ",\"maxHeight\":\($0)" } ?? "" }
    switch request {
    case .ping: return #"{"type":"ping"}"#
    case .follow: return #"{"type":"follow"}"#
    case .weakUplink: return #"{"type":"uplink","limitedBy":"bandwidth"}"#
    case .pin(let participant, let mid, let pixels):
        let name = participant.map { ",\"participant\":\(quoted($0))" } ?? ""
        return #"{"type":"pin","mid":\#(quoted(mid))\#(name)\#(height(pixels))}"#
    case .slot(let mid, let pixels): return #"{"type":"slot","mid":\#(quoted(mid))\#(height(pixels))}"#
    case .visible(let isVisible, let mid):
        return #"{"type":"visible","mid":\#(quoted(mid)),"visible":\#(isVisible)}"#
    case .mute(let participant, let kind):
        return #"{"message_type":"mute","to_participant_identity":\#(quoted(participant)),"#
            + #""kind":"\#(kind.rawValue)"}"#
    case .interact(let command): return written(command)
    case .prefer: return nil
    }
}
