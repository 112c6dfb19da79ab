import Base
import Crypto
import SCTP
import Wire

/// The data channels of one connection: an SCTP association and the table of its channels.
///
/// Takes packets out of DTLS and the time, gives out packets for DTLS and events. What waits for a slow peer is
/// bounded (`SCTPConfiguration`): messages that may be lost push out older ones of their channel, others are refused.
/// - Source: RFC 8831, RFC 8832, RFC 8261.
package final class DataChannelEndpoint {
    private let association: SCTPAssociation
    private let plan: DataChannelPlan
    private var table: DataChannelTable
    private var streams: UInt16 = 0
    private var events: [DataChannelEvent] = []
    /// Messages of channel establishment that did not fit.
    package private(set) var refused: UInt64 = 0

    package init(
        plan: DataChannelPlan, role: DTLSRole, timeline: SCTPTimeline, at now: MonotonicTime
    ) throws(SCTPError) {
        self.plan = plan
        table = DataChannelTable(role: role)
        var configuration = SCTPConfiguration()
        configuration.maximumMessage = DataChannelPlan.maximumReceived
        association = try SCTPAssociation(configuration: configuration, timeline: timeline, at: now)
    }

    // MARK: Packets and time

    /// - Parameter packet: what DTLS has decrypted.
    package func receive(_ packet: Span<UInt8>, at now: MonotonicTime) {
        association.receive(packet, at: now)
        takeIn(at: now)
    }

    /// When `advance` wants to be called; nil while nothing is under way.
    package var deadline: MonotonicTime? { association.deadline }

    /// Does what is due: SCTP's repetitions and late acknowledgements.
    package func advance(to now: MonotonicTime) {
        association.advance(to: now)
        takeIn(at: now)
    }

    /// Packets to send, in this order.
    package func takeOutput() -> [[UInt8]] { association.takeOutput() }

    /// What happened since the last call.
    package func takeEvents() -> [DataChannelEvent] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll() }
        return events
    }

    private func takeIn(at now: MonotonicTime) {
        while true {
            let taken = association.takeEvents()
            guard !taken.isEmpty else { return }
            for event in taken {
                if case .established(let count) = event { streams = count }
                perform(table.receive(event), at: now)
            }
        }
    }

    private func perform(_ effects: [DataChannelTable.Effect], at now: MonotonicTime) {
        for effect in effects {
            switch effect {
            // What does not fit here goes to a peer that reads nothing: its channel stays shut.
            case .send(let message):
                do { try association.send(message, at: now) } catch { refused &+= 1 }
            case .reset(let stream): association.reset(stream, at: now)
            case .tell(let event): events.append(event)
            }
        }
    }

    // MARK: Channels

    /// What a channel that can be used is called; nil if there is none.
    package func description(of stream: UInt16) -> DataChannelOpen? { table.description(of: stream) }

    /// Whether the association is up, so that channels can be opened.
    package var isEstablished: Bool { streams > 0 }

    /// Opens a channel, on which messages can be sent at once.
    package func open(_ open: DataChannelOpen, at now: MonotonicTime) throws(DataChannelError) -> UInt16 {
        let (stream, effects) = try table.open(open, streams: streams)
        perform(effects, at: now)
        return stream
    }

    /// - Throws: `.tooLong` beyond what the client takes, `.bufferFull` where too much waits.
    package func send(
        _ message: DataChannelMessage, on stream: UInt16, at now: MonotonicTime
    ) throws(DataChannelError) {
        guard message.bytes.count <= plan.maximumMessage else { throw .tooLong }
        let encoded = try table.encode(message, on: stream)
        do throws(SCTPSendError) {
            try association.send(encoded, at: now)
        } catch {
            switch error {
            case .closed, .noStream: throw .noChannel
            case .tooLong: throw .tooLong
            case .bufferFull: throw .bufferFull
            }
        }
        takeIn(at: now)
    }

    /// Closes the channel, once what was sent on it has arrived.
    package func close(_ stream: UInt16, at now: MonotonicTime) {
        perform(table.close(stream), at: now)
        takeIn(at: now)
    }

    /// Bytes of a channel that wait for the peer.
    package func buffered(_ stream: UInt16) -> Int { association.buffered(stream) }

    /// Messages that may be lost and were, because the peer was too slow for them.
    package var dropped: Int { association.dropped }
}
