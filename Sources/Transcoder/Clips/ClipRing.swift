import Base
import Wire

/// The last minutes of a stream's packets; nothing is decoded unless a clip is requested.
///
/// The ring begins at an entry point for decoders, so packets older than the longest clip are dropped a group of
/// pictures at a time. Time is a parameter.
struct ClipRing {
    /// The packets of one clip.
    struct Slice {
        /// In the order of arrival, from an entry point on if there is one.
        let packets: [(packet: InputPacket, input: InputID)]
        /// Start of the clip; earlier packets are decoded but not shown.
        let begin: MonotonicTime
        let end: MonotonicTime
        /// Size of the largest picture in the clip, in pixels.
        let canvas: VideoResolution

        /// Length of the clip, rounded down to whole parts of half a second.
        var milliseconds: Int {
            let parts =
                end.nanoseconds(since: begin) / 1_000_000 / Int64(PackagingTiming.usual.partMilliseconds)
            return Int(clamping: parts) * PackagingTiming.usual.partMilliseconds
        }
    }

    /// Longest clip.
    static let longest = Duration.seconds(120)
    /// Shortest clip.
    static let shortest = Duration.seconds(1)
    /// Distance after which a key frame is requested.
    ///
    /// A clip is decoded from the last key frame before its start, so this bounds the extra work.
    static let keyFrameInterval = Duration.seconds(30)
    /// An entry point without a successor for this long belongs to a camera that is off.
    private static let staleness = Duration.seconds(180)
    /// Memory that a packet takes in addition to its payload, in bytes.
    private static let overhead = 192
    /// Assumed if no entry point contains a size.
    private static let usualCanvas = VideoResolution(width: 1_280, height: 720)

    /// Most bytes that the ring keeps.
    private let limit: Int
    private var packets: [(packet: InputPacket, input: InputID)] = []
    /// Packets removed from the front of `packets` so far, so that packet numbers remain stable.
    private var dropped = 0
    /// Numbers of the packets that are entry points of video; the first ever has number 0.
    private var starts: [Int] = []
    /// Payloads and overhead, in bytes.
    private(set) var byteCount = 0
    /// Arrival of the latest packet.
    private var latest = MonotonicTime.zero
    /// The input of the latest video packet; nil once it is closed.
    private var video: InputID?
    /// When the latest entry point arrived or was requested; nil before there is video.
    private var entryAt: MonotonicTime?

    /// - Parameter limit: in bytes; beyond it the oldest group of pictures is dropped.
    init(limit: Int = 64 << 20) {
        self.limit = limit
    }

    var isEmpty: Bool { packets.isEmpty }

    /// Adds a packet, and drops old ones if there are too many bytes.
    mutating func append(_ packet: InputPacket, of input: InputID) {
        latest = max(latest, packet.arrival)
        if packet.codec.video != nil {
            if video != input { (video, entryAt) = (input, nil) }
            if packet.isEntryPoint {
                starts.append(dropped + packets.count)
                entryAt = packet.arrival
            }
            entryAt = entryAt ?? packet.arrival
        }
        packets.append((packet, input))
        byteCount += packet.payload.count + Self.overhead
        while byteCount > limit { dropGroup() }
    }

    /// Notes the end of an input; its packets remain.
    mutating func close(_ input: InputID) {
        if video == input { video = nil }
    }

    /// Drops packets that no clip can use any more.
    mutating func advance(to now: MonotonicTime) {
        while starts.count > 1, arrival(of: starts[1]) <= now - Self.longest { drop(to: starts[1]) }
        if starts.count == 1, arrival(of: starts[0]) <= now - Self.staleness { starts = [] }
        guard starts.isEmpty else { return }
        let old = packets.prefix { $0.packet.arrival < now - Self.longest }.count
        // Removing from the front moves the rest, so several are removed together.
        if old > 256 { drop(to: dropped + old) }
    }

    /// The input for which a key frame has to be requested; at most once per `keyFrameInterval`.
    mutating func takeKeyFrameWish(at now: MonotonicTime) -> InputID? {
        guard let video, let last = entryAt, now >= last + Self.keyFrameInterval else { return nil }
        entryAt = now
        return video
    }

    /// The packets for a clip of the last `length`; nil if there is too little media.
    func slice(of length: Duration, at now: MonotonicTime) -> Slice? {
        let wanted = now - min(max(length, Self.shortest), Self.longest)
        let start = starts.last { arrival(of: $0) <= wanted }.map { $0 - dropped }
        guard let first = start ?? packets.firstIndex(where: { $0.packet.arrival >= wanted }) else {
            return nil
        }
        let begin = max(wanted, packets[first].packet.arrival)
        let part = Array(packets[first...])
        // A stream that has stopped sending has nothing in the requested time.
        guard begin + Self.shortest <= now, begin <= latest else { return nil }
        return Slice(packets: part, begin: begin, end: now, canvas: Self.canvas(of: part.map(\.packet)))
    }

    private func arrival(of number: Int) -> MonotonicTime { packets[number - dropped].packet.arrival }

    /// Drops the oldest group of pictures, or everything if that is the only one.
    private mutating func dropGroup() {
        drop(to: starts.first { $0 > dropped } ?? dropped + packets.count)
    }

    /// Drops all packets before this number.
    private mutating func drop(to number: Int) {
        let count = number - dropped
        byteCount -= packets[..<count].reduce(0) { $0 + $1.packet.payload.count + Self.overhead }
        packets.removeFirst(count)
        dropped = number
        starts.removeAll { $0 < number }
    }

    /// The size of the largest picture, turned upright.
    private static func canvas(of packets: [InputPacket]) -> VideoResolution {
        var largest: VideoResolution?
        for packet in packets where packet.isEntryPoint {
            guard let codec = packet.codec.video,
                let info = try? VideoPayload.describe(
                    codec, payload: packet.payload.span, marker: packet.marker),
                var size = info.resolution
            else { continue }
            // Turned by 90 or 270 degrees (3GPP TS 26.114 §7.4.5).
            if let orientation = packet.orientation, orientation & 1 == 1 {
                size = VideoResolution(width: size.height, height: size.width)
            }
            let known = largest.map { Int($0.width) * Int($0.height) } ?? 0
            if Int(size.width) * Int(size.height) >= known { largest = size }
        }
        return largest ?? usualCanvas
    }
}
