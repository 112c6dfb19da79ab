import Base
import ClientPeer
import Peer
import Wire

/// One receiving m-line of a feed session, which is half of a slot: its audio or its video.
struct FeedLine {
    let ssrc: UInt32
    /// The slot's number; 0 or 1.
    let slot: Int
    let mid: String
    let isVideo: Bool
    /// By payload type.
    let codecs: [UInt8: MediaCodec]
    var reception: ReceiveStream
    /// The stream whose packets arrived last, as an index of the run's streams; nil before the first packet.
    private(set) var stream: Int?
    /// When its latest packet arrived.
    private(set) var lastPacket = MonotonicTime.zero
    /// When its first packet arrived.
    private(set) var start = MonotonicTime.zero
    /// The server has reported that the line has another stream now, or none.
    var isReleased = false
    /// Nil once the stream's first frame is complete, or if it is not awaited.
    private var firstFrame: FirstFrame?
    /// The stream that the line has according to the server; nil for none.
    var told: Int?
    /// Nanoseconds from the publisher to this viewer, of the latest packet that was measured.
    var lastLatency: Int64?
    /// When to request a key frame if there is no picture until then.
    var nextRequest = MonotonicTime.zero
    /// The latest sender report: when it arrived, and its pair of times.
    private(set) var report: (time: MonotonicTime, ntp: UInt64, timestamp: UInt32)?

    /// In nanoseconds; a stream that sends nothing for longer does not count as playing.
    private static let pause: Int64 = 250_000_000
    /// In nanoseconds; an older report belongs to the previous stream on the line.
    private static let freshReport: Int64 = 20_000_000

    /// - Returns: nil for an m-line on which the server sends nothing.
    init?(_ line: ClientPlan.Line, slot: Int) {
        guard let source = line.remote else { return nil }
        ssrc = source.ssrc
        self.slot = slot
        mid = line.mid
        isVideo = line.kind == .video
        codecs = Dictionary(
            line.formats.map { ($0.payloadType, $0.codec) }, uniquingKeysWith: { first, _ in first })
        reception = ReceiveStream(
            ssrc: source.ssrc, clockRate: line.kind == .video ? 90_000 : 48_000, repair: .none)
    }

    /// Whether the picture of the current stream can be decoded.
    var isDecoding: Bool { stream != nil && firstFrame == nil && !isReleased }

    /// Whether a stream has begun whose picture cannot be decoded yet.
    var lacksPicture: Bool { isVideo && stream != nil && !isDecoding && !isReleased }

    /// Whether this stream plays here now.
    func plays(_ number: Int, at now: MonotonicTime) -> Bool {
        stream == number && !isReleased && now.nanoseconds(since: lastPacket) < Self.pause
    }

    /// Notes a packet.
    /// - Parameters:
    ///   - number: of the stream that it belongs to.
    ///   - isCertain: whether the packet itself names the stream. If only the server's message does, the first frame
    ///     may have passed before it, and is not awaited unless this packet starts it.
    /// - Returns: whether a stream begins with this packet.
    mutating func receive(
        _ number: Int, startsKeyFrame: Bool, isCertain: Bool, at now: MonotonicTime
    ) -> Bool {
        // The same stream begins again only after the server released it: a mere pause may be due to this machine.
        let isOver = isReleased && (startsKeyFrame || !isVideo)
        lastPacket = now
        guard number != stream || isOver else { return false }
        stream = number
        start = now
        isReleased = false
        firstFrame = isVideo && (isCertain || startsKeyFrame) ? FirstFrame() : nil
        nextRequest = now.advanced(byNanoseconds: FeedViewer.keyFramePatience)
        if let time = report?.time, now.nanoseconds(since: time) > Self.freshReport { report = nil }
        return true
    }

    /// - Returns: whether this packet completes the stream's first frame.
    mutating func completesFirstFrame(
        index: Int64, timestamp: UInt32, marker: Bool, startsKeyFrame: Bool
    ) -> Bool {
        guard
            firstFrame?.receive(
                index: index, timestamp: timestamp, marker: marker, startsKeyFrame: startsKeyFrame) == true
        else { return false }
        firstFrame = nil
        return true
    }

    /// Keeps a sender report of this line; those of other lines are ignored.
    mutating func receive(_ sender: SenderReport, at now: MonotonicTime) {
        guard sender.ssrc == ssrc else { return }
        _ = reception.receive(sender, at: now)
        report = (now, sender.ntpTime, sender.rtpTimestamp)
    }

    /// When a packet was captured according to the server's sender report, in nanoseconds of the server's wall clock.
    ///
    /// Nil without a report of the current stream.
    /// - Source: RFC 3550 §6.4.1.
    func captureTime(_ timestamp: UInt32) -> Int64? {
        guard let report else { return nil }
        // NTP time: 32 bits of seconds, and 32 bits of their fraction. A shift binds more tightly than a product.
        let seconds = Int64(report.ntp >> 32) &* 1_000_000_000
        let fraction = Int64(((report.ntp & 0xFFFF_FFFF) &* 1_000_000_000) >> 32)
        let ticks = Int64(Int32(bitPattern: timestamp &- report.timestamp))
        return seconds &+ fraction &+ ticks &* 1_000_000_000 / (isVideo ? 90_000 : 48_000)
    }
}
