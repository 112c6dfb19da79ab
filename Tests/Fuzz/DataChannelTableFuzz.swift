// Fuzz entry of the channels of an association: whatever the peer does, bounds hold and channels make sense.
// Seeds: DataChannel/*events.hex

import Crypto
import Peer
import SCTP
import Wire

/// The input is a list of events: what, stream, payload type or count, length of what follows, bytes.
func fuzzDataChannelTable(_ bytes: Span<UInt8>) {
    var table = DataChannelTable(role: .server)
    var open: Set<UInt16> = [DataChannelTable.controlStream]
    var place = 0
    while let what = try? bytes.uint8(at: place), let stream = try? bytes.uint8(at: place + 1),
        let payload = try? bytes.uint8(at: place + 2), let length = try? bytes.uint8(at: place + 3)
    {
        let end = min(place + 4 + Int(length), bytes.count)
        let contents = (try? bytes.bytes(place + 4..<end)).map { [UInt8]($0) } ?? []
        place = end
        let number = UInt16(stream)
        switch what % 8 {
        case 0...3:
            // Long ones reach the bounds.
            let repeated = what % 8 == 3 ? (0..<200).flatMap { _ in contents } : contents
            let message = SCTPMessage(stream: number, payload: 50 + UInt32(payload % 9), bytes: repeated)
            note(table.receive(.message(message)), &open)
        case 4: note(table.receive(.incomingReset(payload % 16 == 0 ? [] : [number])), &open)
        case 5: note(table.receive(.outgoingReset(number)), &open)
        case 6:
            if let new = try? table.open(DataChannelOpen(label: "x"), streams: 256) {
                guard open.insert(new.stream).inserted else { fatalError("a stream was used twice") }
            }
        default:
            note(table.close(number), &open)
            open.remove(number)
        }
        guard table.count <= DataChannelTable.maximumChannels, open.count == table.count,
            open.allSatisfy({ table.description(of: $0) != nil })
        else { fatalError("channels that are not what was told") }
    }
}

private func note(_ effects: [DataChannelTable.Effect], _ open: inout Set<UInt16>) {
    for case .tell(let event) in effects {
        switch event {
        case .opened(let stream, _): open.insert(stream)
        case .closed(let stream):
            guard open.remove(stream) != nil else { fatalError("closed what was not open") }
        case .message(let stream, let message):
            guard open.contains(stream), message.bytes.count <= DataChannelPlan.maximumReceived else {
                fatalError("a message of no channel, or too long")
            }
        }
    }
}
