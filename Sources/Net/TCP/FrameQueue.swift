import Base
import Wire

/// Datagrams waiting to leave over one TCP connection, each preceded by its length.
///
/// The queue grows if the reader is slower than its stream. Frames are dropped whole, never cut, and video is dropped
/// first: once the queue is too long or too old, whole pictures are left out until it is nearly empty. The gap ends
/// at the beginning of a picture, and the player requests a key frame as after any other loss. Part of the room is
/// reserved for audio and control.
///
/// The packets are encrypted, but their RTP headers are not. An SSRC counts as video once it has sent a large packet.
/// - Source: RFC 4571 §2 (framing), RFC 3711 §3.1 (what SRTP does not encrypt).
struct FrameQueue {
    /// Bytes and times at which frames are dropped.
    struct Limits {
        /// Bytes in the queue up to which video is accepted: a key frame of high quality fits beside what is being
        /// sent.
        var videoBytes = 1 << 20
        /// Bytes in the queue up to which anything is accepted.
        var bytes = (1 << 20) + (256 << 10)
        /// Bytes in the queue at or below which video is accepted again.
        var resumeBytes = 64 << 10
        /// Age from which waiting media is useless.
        var oldest = Duration.seconds(1)
    }

    /// Counts of dropped frames.
    struct Drops: Equatable {
        var video: UInt64 = 0
        var other: UInt64 = 0
    }

    /// A datagram with its length prefix.
    private struct Frame {
        /// Bytes, length prefix included.
        let length: Int
        /// Nil for anything but RTP.
        let media: Media?
        let isVideo: Bool
        /// When it was appended.
        let queued: MonotonicTime
    }

    /// The picture that an RTP packet belongs to: all packets of a picture have one timestamp.
    private struct Media: Equatable {
        let ssrc: UInt32
        let timestamp: UInt32
    }

    private struct VideoSource {
        let ssrc: UInt32
        /// When its latest packet came.
        var used: MonotonicTime
        /// RTP timestamp of the picture whose packets are dropped.
        var dropped: UInt32?
    }

    /// Datagrams up to this many bytes do not make an SSRC video; an Opus packet of 20 ms at 128 kbit/s has 320
    /// bytes.
    static let smallDatagram = 400
    /// Video sources remembered: a further one takes the place of the one that has been silent for the longest time.
    private static let sourceLimit = 64
    /// Bytes of memory that an empty queue may keep.
    private static let keptBytes = 16 << 10

    let limits: Limits
    /// Waiting frames, after `sent` bytes that have left already.
    private var bytes: [UInt8] = []
    /// Bytes at the beginning of `bytes` that have been sent.
    private var sent = 0
    private var frames: [Frame] = []
    /// Index of the first frame that has not been sent completely, and how many of its bytes have been.
    private var first = 0
    private var begun = 0
    private var sources: [VideoSource] = []
    /// Whether video is being dropped until the queue is nearly empty.
    private(set) var isShedding = false
    private(set) var drops = Drops()
    private(set) var framesSent: UInt64 = 0
    /// Bytes sent, length prefixes included.
    private(set) var bytesSent: UInt64 = 0

    init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Bytes waiting, length prefixes included.
    var waiting: Int { bytes.count - sent }
    var isEmpty: Bool { waiting == 0 }

    // MARK: Filling

    /// Appends a datagram, or drops it.
    /// - Parameter isTight: whether all connections together hold so much that each may have only a little.
    mutating func append(_ datagram: Span<UInt8>, isTight: Bool = false, at now: MonotonicTime) {
        guard let (high, low) = FrameReader.header(length: datagram.count) else { return }
        let media = Self.media(datagram)
        let source = media.flatMap { videoSource($0.ssrc, size: datagram.count, at: now) }
        let size = FrameReader.headerLength + datagram.count
        if let source, let media {
            guard admitVideo(source, media, size: size, isTight: isTight, at: now) else {
                drops.video &+= 1
                return
            }
        } else if waiting + size > (isTight ? limits.resumeBytes * 2 : limits.bytes) {
            drops.other &+= 1
            return
        }
        bytes.append(high)
        bytes.append(low)
        unsafe datagram.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        frames.append(Frame(length: size, media: media, isVideo: source != nil, queued: now))
    }

    /// Decides whether a packet of video may be appended, and starts or ends dropping.
    private mutating func admitVideo(
        _ source: Int, _ media: Media, size: Int, isTight: Bool, at now: MonotonicTime
    ) -> Bool {
        guard sources[source].dropped != media.timestamp else { return false }
        if isShedding {
            guard waiting <= limits.resumeBytes else {
                sources[source].dropped = media.timestamp
                return false
            }
            isShedding = false
        }
        let limit = isTight ? limits.resumeBytes : limits.videoBytes
        guard waiting + size > limit || isStale(at: now) else {
            sources[source].dropped = nil
            return true
        }
        isShedding = true
        // The waiting part of this picture is useless without the rest.
        sources[source].dropped = media.timestamp
        drops.video &+= remove { $0.media == media }
        return false
    }

    /// Whether the oldest waiting frame is too old.
    private func isStale(at now: MonotonicTime) -> Bool {
        guard first < frames.count else { return false }
        return now - frames[first].queued > limits.oldest
    }

    private static func media(_ datagram: Span<UInt8>) -> Media? {
        guard DatagramKind(datagram) == .rtp, let timestamp = try? datagram.uint32(at: 4),
            let ssrc = try? datagram.uint32(at: 8)
        else { return nil }
        return Media(ssrc: ssrc, timestamp: timestamp)
    }

    /// The index of an SSRC among the video sources, added if the packet is large; nil for audio.
    private mutating func videoSource(_ ssrc: UInt32, size: Int, at now: MonotonicTime) -> Int? {
        if let index = sources.firstIndex(where: { $0.ssrc == ssrc }) {
            sources[index].used = now
            return index
        }
        guard size > Self.smallDatagram else { return nil }
        // Whoever watches one stream after the other meets ever new sources.
        if sources.count >= Self.sourceLimit,
            let oldest = sources.indices.min(by: { sources[$0].used < sources[$1].used })
        {
            sources.remove(at: oldest)
        }
        sources.append(VideoSource(ssrc: ssrc, used: now))
        return sources.count - 1
    }

    // MARK: Emptying

    /// Drops media that has waited too long; called when the connection accepts bytes again after being blocked.
    mutating func expire(at now: MonotonicTime) {
        guard isStale(at: now) else { return }
        let oldest = limits.oldest
        var video: UInt64 = 0
        var pictures: [Media] = []
        let removed = remove { frame in
            guard let media = frame.media, now - frame.queued > oldest else { return false }
            if frame.isVideo {
                video &+= 1
                if pictures.last != media { pictures.append(media) }
            }
            return true
        }
        drops.video &+= video
        drops.other &+= removed &- video
        // Newer packets of the same pictures are useless, too.
        guard !pictures.isEmpty else { return }
        isShedding = true
        // The latest of each source remains, because pictures are in order.
        for picture in pictures {
            guard let index = sources.firstIndex(where: { $0.ssrc == picture.ssrc }) else { continue }
            // A picture that never got in is newer than all that waited.
            if let newer = sources[index].dropped, Int32(bitPattern: newer &- picture.timestamp) > 0 {
                continue
            }
            sources[index].dropped = picture.timestamp
        }
        drops.video &+= remove { frame in frame.media.map(pictures.contains) ?? false }
    }

    /// Passes the waiting bytes to `send`, which returns how many it accepted, or a negative error.
    /// - Returns: what `send` returned.
    mutating func send(_ send: (UnsafeRawBufferPointer) -> Int) -> Int {
        let result = unsafe bytes.withUnsafeBytes {
            unsafe send(UnsafeRawBufferPointer(rebasing: $0[sent...]))
        }
        guard result > 0 else { return result }
        let taken = min(result, waiting)
        sent += taken
        begun += taken
        bytesSent &+= UInt64(taken)
        while first < frames.count, begun >= frames[first].length {
            begun -= frames[first].length
            first += 1
            framesSent &+= 1
        }
        tidy()
        return taken
    }

    /// Releases sent bytes.
    ///
    /// Moving the rest to the front is worth it only once much was sent.
    private mutating func tidy() {
        if isEmpty {
            bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptBytes)
            frames.removeAll(keepingCapacity: frames.capacity <= Self.keptBytes / MemoryLayout<Frame>.stride)
        } else if sent >= 64 << 10, sent >= waiting {
            bytes.removeFirst(sent)
            frames.removeFirst(first)
        } else {
            return
        }
        sent = 0
        first = 0
    }

    /// Removes waiting frames, except one that has been sent in part: cutting it would break the framing.
    /// - Returns: how many were removed.
    private mutating func remove(where isUnwanted: (Frame) -> Bool) -> UInt64 {
        var keptBytes: [UInt8] = []
        var keptFrames: [Frame] = []
        var offset = sent - begun
        var removed: UInt64 = 0
        for (index, frame) in frames[first...].enumerated() {
            let hasBegun = index == 0 && begun > 0
            if !hasBegun, isUnwanted(frame) {
                removed &+= 1
            } else {
                let start = hasBegun ? offset + begun : offset
                keptBytes.append(contentsOf: bytes[start..<(offset + frame.length)])
                keptFrames.append(frame)
            }
            offset += frame.length
        }
        guard removed > 0 else { return 0 }
        bytes = keptBytes
        frames = keptFrames
        sent = 0
        first = 0
        return removed
    }
}
