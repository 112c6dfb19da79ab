import Base
import Wire

/// Watches a VP8 stream as a decoder would, and complains of what would freeze or break a picture.
///
/// Packets may come late and repaired; a frame counts when all its packets are there and every frame before it,
/// back to a key frame, was complete.
/// - Source: RFC 7741 §4.2, §4.5.
package struct DecoderModel {
    /// What no decoder should ever see.
    package enum Complaint: Equatable, Sendable {
        /// Picture ids jump though no packet is missing.
        case pictureIDJump(from: UInt16, to: UInt16)
        /// The time stamp of a later frame is earlier.
        case timestampBackwards
        /// Packets of one frame disagree.
        case mixedFrame
        /// The very first frame that was sent is none that a decoder can begin with.
        case startsWithoutKeyFrame
        case unreadable
    }

    private struct Frame {
        var timestamp: UInt32
        var pictureID: UInt16?
        var isKeyFrame: Bool
        /// Exclusive end, known once the marker came.
        var end: Int64?
    }

    /// Frames shown, key frames among them.
    package private(set) var framesDecoded = 0
    /// Of `framesDecoded`.
    package private(set) var keyFramesDecoded = 0
    /// In the order in which they were noticed; empty for a sound stream.
    package private(set) var complaints: [Complaint] = []
    /// From the first frame shown to the last one, in ticks of 90 kHz; nil before the second.
    package var shownTicks: UInt32? {
        guard let firstShown, let last, framesDecoded > 1 else { return nil }
        return last.timestamp &- firstShown
    }
    private var firstShown: UInt32?
    /// The first packet that was sent, if that is known: what is received first may follow on a loss.
    package var firstSent: Int64?
    private var packets: [Int64: RTPHeader] = [:]
    private var payloads: [Int64: [UInt8]] = [:]
    /// The first packet of the next frame to show.
    private var next: Int64?
    private var newest = Int64.min
    /// The latest key frame of which the first packet came.
    private var keyFrame: (start: Int64, timestamp: UInt32)?
    private var last: Frame?
    /// Between the last frame shown and the next.
    private var framesCut: UInt16 = 0
    /// Empty packets, each of which may stand for a picture that was left out.
    private var placesFilled: UInt16 = 0
    private var needsKeyFrame = true

    /// Packets further behind are given up.
    private static let window: Int64 = 2_000

    package init() {}

    /// Takes one packet in; duplicates do no harm.
    package mutating func receive(_ header: RTPHeader, payload: [UInt8], sequenceNumber: Int64) {
        // Before the first picture an earlier packet may still come, by another way.
        if let next, sequenceNumber < next, last != nil { return }
        packets[sequenceNumber] = header
        payloads[sequenceNumber] = payload
        newest = max(newest, sequenceNumber)
        let startsKeyFrame = startsKeyFrame(header, payload)
        if last == nil { begin(with: sequenceNumber, isPossible: startsKeyFrame, payload) }
        if header.timestamp != keyFrame?.timestamp, startsKeyFrame {
            keyFrame = (sequenceNumber, header.timestamp)
        }
        while showNextFrame() {}
        skipIfStuck()
    }

    /// Nothing was shown yet: all that comes before a key frame is kept, since what it needs may still come.
    private mutating func begin(with sequenceNumber: Int64, isPossible: Bool, _ payload: [UInt8]) {
        if isPossible {
            next = min(next ?? sequenceNumber, sequenceNumber)
        } else if sequenceNumber == firstSent, !payload.isEmpty {
            complaints.append(.startsWithoutKeyFrame)
        }
        guard next == nil, packets.count > Self.window else { return }
        packets = packets.filter { $0.key > newest - Self.window / 2 }
        payloads = payloads.filter { $0.key > newest - Self.window / 2 }
    }

    /// A later key frame that is complete is better than an earlier frame that is not; and so is the newest packet,
    /// if what is missing is too long ago.
    private mutating func skipIfStuck() {
        guard let first = next else { return }
        if let keyFrame, keyFrame.start > first, frameEnd(from: keyFrame.start) != nil {
            skip(to: keyFrame.start)
            while showNextFrame() {}
        } else if newest - first > Self.window {
            skip(to: newest)
        }
    }

    private func startsKeyFrame(_ header: RTPHeader, _ payload: [UInt8]) -> Bool {
        let info = try? VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
        return info?.startsKeyFrame ?? false
    }

    /// The last packet of the frame that begins with `first`; nil while any is missing.
    private func frameEnd(from first: Int64) -> Int64? {
        var end = first
        while let packet = packets[end] {
            if packet.marker { return end }
            end += 1
        }
        return nil
    }

    /// Whether there has to be a key frame before anything more is shown.
    package var isWaitingForKeyFrame: Bool { needsKeyFrame }

    /// Gives up what is missing and waits for the next key frame.
    private mutating func skip(to sequenceNumber: Int64) {
        packets = packets.filter { $0.key >= sequenceNumber }
        payloads = payloads.filter { $0.key >= sequenceNumber }
        next = sequenceNumber
        needsKeyFrame = true
    }

    private mutating func showNextFrame() -> Bool {
        guard let first = next, let header = packets[first], let payload = payloads[first] else {
            return false
        }
        if payload.isEmpty {
            // Padding: it fills a place and shows nothing.
            placesFilled &+= 1
            forget(first...first)
            return true
        }
        var end = first
        while let packet = packets[end] {
            guard packet.timestamp == header.timestamp else {
                // A change of the source may cut a frame off; the key frame that follows makes up for it.
                if startsKeyFrame(packet, payloads[end] ?? []) {
                    framesCut += 1
                } else {
                    complaints.append(.mixedFrame)
                }
                forget(first...(end - 1))
                return true
            }
            if packet.marker { break }
            end += 1
        }
        guard packets[end] != nil else { return false }
        show(first...end, header, payload)
        forget(first...end)
        return true
    }

    private mutating func show(_ range: ClosedRange<Int64>, _ header: RTPHeader, _ payload: [UInt8]) {
        guard let descriptor = try? VP8Descriptor(parsing: payload.span),
            let info = try? VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
        else {
            complaints.append(.unreadable)
            return
        }
        // What comes before the first key frame, or after a gap, is of no use: a decoder asks for a key frame.
        if needsKeyFrame, !info.isKeyFrame || !info.startsFrame { return }
        if let last {
            if Int32(bitPattern: header.timestamp &- last.timestamp) <= 0 {
                complaints.append(.timestampBackwards)
            }
            if !needsKeyFrame, let before = last.pictureID, let now = descriptor.pictureID,
                (now &- before &- 1 &- framesCut) & 0x7FFF > placesFilled
            {
                complaints.append(.pictureIDJump(from: before, to: now))
            }
        }
        needsKeyFrame = false
        framesCut = 0
        placesFilled = 0
        framesDecoded += 1
        firstShown = firstShown ?? header.timestamp
        if info.isKeyFrame { keyFramesDecoded += 1 }
        last = Frame(
            timestamp: header.timestamp, pictureID: descriptor.pictureID, isKeyFrame: info.isKeyFrame,
            end: range.upperBound + 1)
    }

    private mutating func forget(_ range: ClosedRange<Int64>) {
        for sequenceNumber in range {
            packets[sequenceNumber] = nil
            payloads[sequenceNumber] = nil
        }
        next = range.upperBound + 1
    }
}
