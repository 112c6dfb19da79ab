import Crypto
import Peer
import SCTP
import Testing
import Wire

/// What becomes of channels while they open and close, and of a peer that does not wait for that.
@Suite struct `Data channels that come and go` {
    private var table = DataChannelTable(role: .server)
    private let chat = DataChannelOpen(label: "data:chat")

    private mutating func receive(_ payload: DataChannelPayload, on stream: UInt16, _ bytes: [UInt8])
        -> [DataChannelTable.Effect]
    {
        table.receive(.message(SCTPMessage(stream: stream, payload: payload.rawValue, bytes: bytes)))
    }

    private mutating func receive(_ open: DataChannelOpen, on stream: UInt16) -> [DataChannelTable.Effect] {
        receive(.control, on: stream, DataChannelControl.open(open).bytes)
    }

    /// The effects of a peer's request that is granted.
    private func granted(_ open: DataChannelOpen, on stream: UInt16) -> [DataChannelTable.Effect] {
        [.send(SCTPMessage(stream: stream, payload: 50, bytes: [2])), .tell(.opened(stream, open))]
    }

    // MARK: Closing

    @Test mutating func `the control stream is not reused while we close it`() {
        let closing = table.close(0)
        #expect(closing == [.reset(0)])
        let early = receive(chat, on: 0)
        #expect(early == [])
        #expect(table.description(of: 0) == nil)
        #expect(table.undecodable == 1)
        let (ours, theirs) = (table.receive(.outgoingReset(0)), table.receive(.incomingReset([0])))
        #expect(ours == [] && theirs == [])
        let late = receive(chat, on: 0)
        #expect(late == granted(chat, on: 0))
    }

    @Test mutating func `the control stream is not reused while the peer closes it`() {
        let closing = table.receive(.incomingReset([0]))
        #expect(closing == [.reset(0), .tell(.closed(0))])
        let early = receive(chat, on: 0)
        #expect(early == [])
        #expect(table.count == 0)
        let confirmed = table.receive(.outgoingReset(0))
        #expect(confirmed == [])
        let late = receive(chat, on: 0)
        #expect(late == granted(chat, on: 0))
    }

    @Test mutating func `a channel that both sides close at once is reported closed once`() {
        _ = receive(chat, on: 2)
        let ours = table.close(2)
        #expect(ours == [.reset(2)])
        let theirs = table.receive(.incomingReset([2]))
        #expect(theirs == [])
        // Our reset is not confirmed yet.
        let early = receive(chat, on: 2)
        #expect(early == [])
        let confirmed = table.receive(.outgoingReset(2))
        #expect(confirmed == [])
        let late = receive(chat, on: 2)
        #expect(late == granted(chat, on: 2))
    }

    @Test mutating func `resets of unknown streams and repeated resets change nothing`() {
        _ = receive(chat, on: 2)
        let first = table.receive(.incomingReset([7, 2]))
        #expect(first == [.reset(2), .tell(.closed(2))])
        let again = table.receive(.incomingReset([2]))
        #expect(again == [])
        let unknown = table.receive(.outgoingReset(7))
        #expect(unknown == [])
        // A reset of ours that we did not ask for closes nothing.
        let uncalled = table.receive(.outgoingReset(0))
        #expect(uncalled == [])
        #expect(table.description(of: 0) != nil)
    }

    @Test mutating func `do not count toward the limit while they close`() {
        for number in 1..<64 { _ = receive(chat, on: UInt16(2 * number)) }
        #expect(table.count == DataChannelTable.maximumChannels)
        let closing = table.close(2)
        #expect(closing == [.reset(2)])
        let further = receive(chat, on: 128)
        #expect(further == granted(chat, on: 128))
        let tooMany = receive(chat, on: 130)
        #expect(tooMany == [.reset(130)])
    }

    @Test mutating func `an incomplete message is dropped with its stream`() {
        _ = receive(chat, on: 2)
        let piece = receive(.binaryPiece, on: 2, [1])
        #expect(piece == [])
        _ = table.receive(.incomingReset([2]))
        _ = table.receive(.outgoingReset(2))
        _ = receive(chat, on: 2)
        let message = receive(.binary, on: 2, [2])
        #expect(message == [.tell(.message(2, .binary([2])))])
    }

    @Test mutating func `only pieces of one channel are joined to a message`() {
        _ = receive(chat, on: 2)
        _ = receive(.stringPiece, on: 0, [65])
        let other = receive(.string, on: 2, [66])
        #expect(other == [.tell(.message(2, DataChannelMessage("B")))])
        let joined = receive(.string, on: 0, [67])
        #expect(joined == [.tell(.message(0, DataChannelMessage("AC")))])
    }

    // MARK: Hostile peers

    @Test mutating func `a channel closes once when a message is too long`() {
        let first = table.receive(.tooLong(stream: 0))
        #expect(first == [.reset(0), .tell(.closed(0))])
        let again = table.receive(.tooLong(stream: 0))
        #expect(again == [])
        #expect(table.undecodable == 2)
    }

    @Test mutating func `keep a refused stream until both directions are reset`() {
        let refused = table.receive(.tooLong(stream: 8))
        #expect(refused == [.reset(8)])
        let early = receive(chat, on: 8)
        #expect(early == [])
        _ = table.receive(.outgoingReset(8))
        let stillEarly = receive(chat, on: 8)
        #expect(stillEarly == [])
        _ = table.receive(.incomingReset([8]))
        let late = receive(chat, on: 8)
        #expect(late == granted(chat, on: 8))
    }

    @Test mutating func `labels are limited to 256 bytes, whatever characters they have`() {
        // Two bytes each.
        let label = String(repeating: "é", count: 128)
        let longest = DataChannelOpen(label: label)
        let taken = receive(longest, on: 2)
        #expect(taken == granted(longest, on: 2))
        let refused = receive(DataChannelOpen(label: label, subprotocol: "a"), on: 4)
        #expect(refused == [.reset(4)])
    }

    // MARK: Opening

    @Test mutating func `are open once the peer uses them, even before it acknowledges`() throws {
        let lossy = DataChannelOpen(
            label: "x", delivery: .init(isOrdered: false, reliability: .retransmissions(0)))
        _ = try table.open(lossy, streams: 256)
        let message = receive(.string, on: 1, [65])
        #expect(message == [.tell(.message(1, DataChannelMessage("A")))])
        let delivery = try table.encode(DataChannelMessage("B"), on: 1).delivery
        #expect(delivery == lossy.delivery)
        // The acknowledgement that was overtaken means nothing any more.
        let acknowledged = receive(.control, on: 1, [2])
        #expect(acknowledged == [])
        #expect(table.description(of: 1) == lossy)
    }

    @Test mutating func `may be closed by the peer instead of acknowledged`() throws {
        _ = try table.open(chat, streams: 256)
        let closed = table.receive(.incomingReset([1]))
        #expect(closed == [.reset(1), .tell(.closed(1))])
        let acknowledged = receive(.control, on: 1, [2])
        #expect(acknowledged == [])
        #expect(throws: DataChannelError.noChannel) { try table.encode(DataChannelMessage("a"), on: 1) }
        _ = table.receive(.outgoingReset(1))
        let (stream, _) = try table.open(chat, streams: 256)
        #expect(stream == 1)
    }

    @Test mutating func `of a DTLS client have even streams, but never the control stream`() throws {
        table = DataChannelTable(role: .client)
        let (stream, _) = try table.open(chat, streams: 3)
        #expect(stream == 2)
        #expect(throws: DataChannelError.tooManyChannels) { try table.open(chat, streams: 3) }
        let odd = receive(chat, on: 5)
        #expect(odd == granted(chat, on: 5))
        let even = receive(chat, on: 4)
        #expect(even == [.reset(4)])
        // The peer may not open the control stream either.
        let control = receive(chat, on: 0)
        #expect(control == [.reset(0), .tell(.closed(0))])
    }

    @Test mutating func `are not opened without streams`() {
        #expect(throws: DataChannelError.tooManyChannels) { try table.open(chat, streams: 0) }
        #expect(throws: DataChannelError.tooManyChannels) { try table.open(chat, streams: 1) }
    }

    // MARK: The end

    @Test mutating func `all channels end once, and those that were closing are not reported`() {
        _ = receive(chat, on: 2)
        _ = table.close(2)
        let end = table.receive(.ended)
        #expect(end == [.tell(.closed(0))])
        let events: [SCTPAssociation.Event] = [
            .ended, .established(streams: 9), .incomingReset([]), .outgoingReset(2), .tooLong(stream: 0),
        ]
        for event in events {
            let effects = table.receive(event)
            #expect(effects == [], "\(event)")
        }
        #expect(table.count == 0)
        #expect(table.description(of: 0) == nil)
        let closing = table.close(0)
        #expect(closing == [])
    }
}
