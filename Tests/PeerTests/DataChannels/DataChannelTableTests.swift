import Crypto
import Peer
import SCTP
import Testing
import Wire

@Suite struct DataChannelTables {
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

    private func acknowledgement(on stream: UInt16) -> DataChannelTable.Effect {
        .send(SCTPMessage(stream: stream, payload: 50, bytes: [2]))
    }

    @Test mutating func `begin with the control channel`() {
        #expect(
            table.receive(.established(streams: 256)) == [
                .tell(.opened(0, DataChannelOpen(label: "control")))
            ])
        #expect(receive(.string, on: 0, [65]) == [.tell(.message(0, DataChannelMessage("A")))])
    }

    @Test mutating func `acknowledge a channel that the peer opens`() throws {
        #expect(receive(chat, on: 2) == [acknowledgement(on: 2), .tell(.opened(2, chat))])
        #expect(table.description(of: 2) == chat)
        #expect(try table.encode(DataChannelMessage("B"), on: 2).bytes == [66])
    }

    @Test mutating func `let a client open stream 0 that has not agreed to its use`() {
        #expect(receive(chat, on: 0) == [acknowledgement(on: 0), .tell(.opened(0, chat))])
        // But only once.
        #expect(receive(chat, on: 0) == [.reset(0), .tell(.closed(0))])
    }

    @Test mutating func `refuse a stream of the wrong side, one that is open, and long names`() {
        #expect(receive(chat, on: 3) == [.reset(3)])
        #expect(receive(DataChannelOpen(label: String(repeating: "x", count: 257)), on: 4) == [.reset(4)])
        #expect(receive(chat, on: 2).count == 2)
        #expect(receive(chat, on: 2) == [.reset(2), .tell(.closed(2))])
    }

    @Test mutating func `refuse more channels than may be`() {
        for number in 1..<64 { #expect(receive(chat, on: UInt16(2 * number)).count == 2) }
        #expect(table.count == 64)
        #expect(receive(chat, on: 128) == [.reset(128)])
        #expect(throws: DataChannelError.tooManyChannels) { try table.open(chat, streams: 256) }
    }

    @Test mutating func `open channels on odd streams, ordered until they are acknowledged`() throws {
        let lossy = DataChannelOpen(
            label: "x", delivery: .init(isOrdered: false, reliability: .retransmissions(1)))
        let (stream, effects) = try table.open(lossy, streams: 256)
        #expect(stream == 1)
        #expect(
            effects == [
                .send(SCTPMessage(stream: 1, payload: 50, bytes: DataChannelControl.open(lossy).bytes))
            ])
        #expect(
            try table.encode(DataChannelMessage("a"), on: 1).delivery
                == .init(isOrdered: true, reliability: .retransmissions(1)))
        #expect(receive(.control, on: 1, [2]) == [])
        #expect(try table.encode(DataChannelMessage("a"), on: 1).delivery == lossy.delivery)
        #expect(try table.open(lossy, streams: 256).stream == 3)
        #expect(throws: DataChannelError.tooManyChannels) { try table.open(lossy, streams: 4) }
    }

    @Test mutating func `free a stream once both directions are closed`() throws {
        _ = try table.open(chat, streams: 256)
        #expect(table.close(1) == [.reset(1)])
        #expect(table.close(1) == [])
        #expect(throws: DataChannelError.noChannel) { try table.encode(DataChannelMessage("a"), on: 1) }
        #expect(receive(.string, on: 1, [65]) == [])
        #expect(table.receive(.outgoingReset(1)) == [])
        #expect(try table.open(chat, streams: 256).stream == 3)
        #expect(table.receive(.incomingReset([1])) == [])
        #expect(try table.open(chat, streams: 256).stream == 1)
    }

    @Test mutating func `answer the peer's close with one`() {
        _ = receive(chat, on: 2)
        #expect(table.receive(.incomingReset([2])) == [.reset(2), .tell(.closed(2))])
        #expect(table.receive(.outgoingReset(2)) == [])
        #expect(receive(chat, on: 2) == [acknowledgement(on: 2), .tell(.opened(2, chat))])
    }

    @Test mutating func `a reset that names no stream resets all`() {
        _ = receive(chat, on: 2)
        #expect(
            table.receive(.incomingReset([])) == [
                .reset(0), .tell(.closed(0)), .reset(2), .tell(.closed(2)),
            ])
    }

    @Test mutating func `empty text and binary messages are sent and received`() throws {
        #expect(receive(.emptyString, on: 0, [0]) == [.tell(.message(0, .string([])))])
        #expect(receive(.emptyBinary, on: 0, [0]) == [.tell(.message(0, .binary([])))])
        #expect(try table.encode(.string([]), on: 0) == SCTPMessage(stream: 0, payload: 56, bytes: [0]))
        #expect(try table.encode(.binary([]), on: 0) == SCTPMessage(stream: 0, payload: 57, bytes: [0]))
    }

    @Test mutating func `join the pieces of older clients, within a bound`() {
        #expect(receive(.stringPiece, on: 0, [65]) == [])
        #expect(receive(.string, on: 0, [66]) == [.tell(.message(0, DataChannelMessage("AB")))])
        #expect(receive(.string, on: 0, [67]) == [.tell(.message(0, DataChannelMessage("C")))])
        // The last piece may be empty, and the next message is one of its own.
        #expect(receive(.binaryPiece, on: 0, [1]) == [])
        #expect(receive(.emptyBinary, on: 0, [0]) == [.tell(.message(0, .binary([1])))])
        #expect(receive(.stringPiece, on: 0, [65]) == [])
        #expect(receive(.emptyString, on: 0, [0]) == [.tell(.message(0, DataChannelMessage("A")))])
        #expect(receive(.string, on: 0, [67]) == [.tell(.message(0, DataChannelMessage("C")))])
        _ = receive(chat, on: 2)
        let half = [UInt8](repeating: 1, count: 131_072)
        #expect(receive(.binaryPiece, on: 0, half) == [])
        #expect(receive(.binaryPiece, on: 2, half) == [])
        #expect(receive(.binaryPiece, on: 2, [1]) == [.reset(2), .tell(.closed(2))])
        // What the closed channel held is free again.
        #expect(receive(.binaryPiece, on: 0, half) == [])
        #expect(receive(.binary, on: 0, [1]) == [.reset(0), .tell(.closed(0))])
    }

    @Test mutating func `ignore what belongs to no channel or makes no sense`() {
        #expect(receive(.string, on: 9, [65]) == [])
        #expect(receive(.control, on: 2, [7]) == [])
        #expect(receive(.control, on: 0, [2]) == [])
        #expect(table.receive(.message(SCTPMessage(stream: 0, payload: 99, bytes: [1]))) == [])
        #expect(table.undecodable == 4)
    }

    @Test mutating func `close everything when the association ends`() {
        _ = receive(chat, on: 2)
        #expect(table.receive(.ended) == [.tell(.closed(0)), .tell(.closed(2))])
        #expect(receive(.string, on: 0, [65]) == [])
        #expect(throws: DataChannelError.tooManyChannels) { try table.open(chat, streams: 256) }
    }
}
