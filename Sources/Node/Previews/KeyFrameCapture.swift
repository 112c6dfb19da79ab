import Base
import Forwarding
import Peer
import Synchronization
import Transcoder
import Wire

/// Collects the packets of one key frame, from which a preview is made.
final class KeyFrameCapture: TapSink {
    /// A complete key frame, as the transcoder decodes it.
    struct Frame: Sendable {
        let codec: VideoCodec
        /// Identifies the key frame, so that the next preview is made of a later one.
        let mark: TapMark
        var orientation: UInt8
        var payloads: [[UInt8]]
    }

    /// Bytes of a key frame, at most; a larger one is dropped.
    private static let limit = 2 << 20

    /// Written on the worker's thread.
    private let state = Mutex<(frame: Frame?, bytes: Int)>((nil, 0))
    private let finished: @Sendable (Frame?) -> Void

    /// - Parameter finished: called once, on the worker's thread; nil without a key frame.
    init(_ finished: @escaping @Sendable (Frame?) -> Void) {
        self.finished = finished
    }

    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>) {
        guard let codec = packet.codec.video, let payload = try? bytes.bytes(packet.payload) else { return }
        state.withLock { state in
            state.bytes += payload.count
            guard state.bytes <= Self.limit else { return }
            var frame =
                state.frame ?? Frame(codec: codec, mark: TapMark(packet), orientation: 0, payloads: [])
            // Senders that save bytes write the orientation into a frame's last packet only.
            if let orientation = packet.orientation { frame.orientation = orientation }
            frame.payloads.append(payload)
            state.frame = frame
        }
    }

    /// The tap has ended: passes on what was collected.
    func finish() {
        finished(state.withLock { state in state.bytes <= Self.limit ? state.frame : nil })
    }
}
