import Base
import Crypto
import SCTP
import Wire

/// The data channels of one connection: an SCTP association and the table of its channels.
///
/// Consumes decrypted DTLS payloads and the time; returns packets for DTLS, and events. The queue for a slow peer
/// is bounded (`SCTPConfiguration`): messages that may be lost replace older ones of their channel, others are
/// refused.
/// - Source: RFC 8831, RFC 8832, RFC 8261.
package final class DataChannelEndpoint {
    private let association: SCTPAssociation
    private let plan: DataChannelPlan
    private var table: DataChannelTable
    // SCTP streams of the association; 0 until it is established.
    private var streams: UInt16 = 0
    private var events: [DataChannelEvent] = []
    /// Messages of channel establishment that did not fit into the queue.
    package private(set) var refused: UInt64 = 0

    /// Starts the association.
    /// - Throws: `SCTPError` if the process has no association left.
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

    /// Processes a packet of the association.
    /// - Parameter packet: decrypted by DTLS.
    package func receive(_ packet: Span<UInt8>, at now: MonotonicTime) {
        association.receive(packet, at: now)
        takeIn(at: now)
    }

    /// When `advance` must be called next; nil while no timer runs.
    package var deadline: MonotonicTime? { association.deadline }

    /// Handles what is due: SCTP retransmissions and delayed acknowledgements.
    package func advance(to now: MonotonicTime) {
        association.advance(to: now)
        takeIn(at: now)
    }

    /// Removes and returns the packets to send, in this order.
    package func takeOutput() -> [[UInt8]] { association.takeOutput() }

    /// Removes and returns what happened since the last call.
    package func takeEvents() -> [DataChannelEvent] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll() }
        return events
    }

    /// Applies the association's events to the table until none are left: effects can cause further events.
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
            // A message that does not fit goes to a peer that reads nothing; its channel stays closed.
            case .send(let message):
                do { try association.send(message, at: now) } catch { refused &+= 1 }
            case .reset(let stream): association.reset(stream, at: now)
            case .tell(let event): events.append(event)
            }
        }
    }

    // MARK: Channels

    /// The label, subprotocol and reliability of a usable channel; nil if there is none with this number.
    package func description(of stream: UInt16) -> DataChannelOpen? { table.description(of: stream) }

    /// Whether the association is established, so that channels can be opened.
    package var isEstablished: Bool { streams > 0 }

    /// Opens a channel; messages may be sent on it immediately.
    /// - Returns: its SCTP stream.
    package func open(_ open: DataChannelOpen, at now: MonotonicTime) throws(DataChannelError) -> UInt16 {
        let (stream, effects) = try table.open(open, streams: streams)
        perform(effects, at: now)
        return stream
    }

    /// Sends a message on a channel.
    /// - Throws: `.tooLong` above the client's maximum, `.bufferFull` if the queue is full, `.noChannel`.
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

    /// Closes the channel once everything sent on it has arrived.
    package func close(_ stream: UInt16, at now: MonotonicTime) {
        perform(table.close(stream), at: now)
        takeIn(at: now)
    }

    /// Bytes queued on a channel that the peer has not acknowledged.
    package func buffered(_ stream: UInt16) -> Int { association.buffered(stream) }

    /// Unreliable messages that were dropped because the peer was too slow for them.
    package var dropped: Int { association.dropped }
}
