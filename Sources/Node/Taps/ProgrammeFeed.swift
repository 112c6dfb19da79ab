import Base
import Forwarding
import Peer
import Synchronization
import Transcoder
import Wire

/// Feeds the packets of a tap to an input of the transcoder, on the worker's thread.
final class ProgrammeFeed: TapSink {
    private let transcoder: TranscoderSupervisor
    private let input: InputID
    private let finished: @Sendable () -> Void

    /// - Parameter finished: called when the tap is closed or its track has ended.
    init(
        _ transcoder: TranscoderSupervisor, _ input: InputID,
        finished: @escaping @Sendable () -> Void = {}
    ) {
        self.transcoder = transcoder
        self.input = input
        self.finished = finished
    }

    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) {
        let range = packet.payload
        // A range outside the packet would trap; the packet is left out instead.
        guard range.lowerBound >= 0, range.upperBound <= bytes.count else { return }
        transcoder.feed(input, Self.header(of: packet), payload: bytes.extracting(range))
    }

    func finish() { finished() }

    /// The packet's metadata; the payload goes beside it.
    private static func header(of packet: TappedPacket) -> InputPacket {
        InputPacket(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, marker: packet.marker,
            codec: InputCodec(packet.codec.video), isEntryPoint: packet.isEntryPoint,
            epoch: packet.epoch, arrival: packet.arrival, captured: packet.captured,
            audioLevel: packet.audioLevel, orientation: packet.orientation)
    }
}
