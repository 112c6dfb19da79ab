import Base
import ClientPeer
import Peer
import Wire

/// One receiving m-line of a feed session: half of a slot.
struct FeedLine {
    let ssrc: UInt32
    let slot: Int
    let mid: String
    let isVideo: Bool
    let codecs: [UInt8: MediaCodec]
    var reception: ReceiveStream
    /// Whose packets came last, by number, and when.
    private(set) var stream: Int?
    private(set) var lastPacket = MonotonicTime.zero
    private(set) var start = MonotonicTime.zero
    /// The server said that the line carries something else now.
    var isReleased = false
    /// Nil once a first frame of the stream is complete.
    private var firstFrame: FirstFrame?
    /// What the server says the line carries.
    var told: Int?
    /// Nanoseconds from publisher to here, of the last packet that was measured.
    var lastLatency: Int64?
    var nextRequest = MonotonicTime.zero
    private(set) var report: (time: MonotonicTime, ntp: UInt64, timestamp: UInt32)?

    /// Who sent nothing for longer does not play.
    private static let pause: Int64 = 250_000_000
    /// Older reports are of the stream before.
    private static let freshReport: Int64 = 20_000_000

    /// - Returns: nil for an m-line that the server sends nothing on.
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

    /// Whether the stream's picture can be decoded.
    var isDecoding: Bool { stream != nil && firstFrame == nil && !isReleased }

    /// Whether a stream has begun here whose picture cannot be decoded yet.
    var lacksPicture: Bool { isVideo && stream != nil && !isDecoding && !isReleased }

    /// Whether a stream plays here.
    func plays(_ number: Int, at now: MonotonicTime) -> Bool {
        stream == number && !isReleased && now.nanoseconds(since: lastPacket) < Self.pause
    }

    /// Takes a packet in.
    /// - Parameter isCertain: the packet itself names the stream; else its first frame has passed before that was told.
    /// - Returns: whether a stream begins with it.
    mutating func receive(
        _ number: Int, startsKeyFrame: Bool, isCertain: Bool, at now: MonotonicTime
    ) -> Bool {
        // The same stream comes anew only after the server let it go: a pause may be the machine's.
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

    /// - Returns: whether the first frame is complete with this packet.
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

    mutating func receive(_ sender: SenderReport, at now: MonotonicTime) {
        guard sender.ssrc == ssrc else { return }
        _ = reception.receive(sender, at: now)
        report = (now, sender.ntpTime, sender.rtpTimestamp)
    }

    /// When a packet was captured by the server's reports, in nanoseconds of the server's wall clock.
    func captureTime(_ timestamp: UInt32) -> Int64? {
        guard let report else { return nil }
        let seconds = Int64(report.ntp >> 32) &* 1_000_000_000
        let fraction = Int64((report.ntp & 0xFFFF_FFFF) &* 1_000_000_000 >> 32)
        let ticks = Int64(Int32(bitPattern: timestamp &- report.timestamp))
        return seconds &+ fraction &+ ticks &* 1_000_000_000 / (isVideo ? 90_000 : 48_000)
    }
}
