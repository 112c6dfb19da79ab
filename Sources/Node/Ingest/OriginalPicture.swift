import Base
import Forwarding
import Ingest
import Synchronization
import Transcoder
import Wire

/// One publisher's pictures as the encoder made them, where viewers get others in their place; for HLS that passes
/// them on, while nothing that follows a key frame is shown before it.
///
/// Fed by the thread that reads what the publisher sends, tapped from anywhere. While nobody taps it, it costs nothing.
final class OriginalPicture: Sendable {
    private struct Tap {
        let input: InputID
        let ended: @Sendable (TapID) -> Void
        /// Packets so far.
        var count: Int64 = 0
    }

    private struct State {
        var taps: [TapID: Tap] = [:]
        var hasEnded = false
        /// Of the latest key frame.
        var timestamp: UInt32?

        /// Whether a picture is shown before the key frame that came earlier: who begins there cannot decode it.
        mutating func isLeading(_ picture: IngestPicture) -> Bool {
            if picture.isKeyFrame { timestamp = picture.timestamp }
            guard let timestamp, !picture.isKeyFrame else { return false }
            return Int32(bitPattern: picture.timestamp &- timestamp) <= 0
        }
    }

    /// Hands a packet to an input of the transcoder.
    typealias Feed = @Sendable (InputID, InputPacket, Span<UInt8>) -> Void

    let codec: VideoCodec
    private let feed: Feed
    private let state = Mutex(State())

    init(_ codec: VideoCodec, feed: @escaping Feed) {
        self.codec = codec
        self.feed = feed
    }

    /// Whether there is nothing to pass on any more.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Has all that follows fed to an input of the transcoder, from the latest key frame on.
    /// - Parameter ended: called once, where the publisher's thread must not wait: the tap is closed, or nothing more
    ///   comes.
    /// - Returns: false where nothing comes any more; `ended` is not called then.
    func open(_ tap: TapID, into input: InputID, ended: @escaping @Sendable (TapID) -> Void) -> Bool {
        state.withLock { state in
            guard !state.hasEnded else { return false }
            state.taps[tap] = Tap(input: input, ended: ended)
            return true
        }
    }

    /// - Returns: false for a tap that is not open here.
    func close(_ tap: TapID) -> Bool {
        let closed = state.withLock { $0.taps.removeValue(forKey: tap) }
        closed?.ended(tap)
        return closed != nil
    }

    func has(_ tap: TapID) -> Bool { state.withLock { $0.taps[tap] != nil } }

    /// Ends all taps; there will be no others.
    func end() {
        let taps = state.withLock { state in
            defer { state = State(hasEnded: true) }
            return state.taps
        }
        for (name, tap) in taps { tap.ended(name) }
    }

    /// Feeds each tap, or ends all where a picture is shown before the key frame that it follows.
    /// - Parameter group: the picture that came last, behind all others since the latest key frame; empty where those
    ///   were too much, so that who has nothing yet waits for the next one.
    func take(_ picture: TimedPicture, _ group: [TimedPicture]) {
        let isFed = state.withLock { state in
            guard !state.hasEnded else { return true }
            guard !state.isLeading(picture.picture) else { return false }
            for (name, var tap) in state.taps {
                for picture in tap.count == 0 ? group : [picture] {
                    picture.forEachPacket(InputCodec(codec)) { packet, payload in
                        tap.count += 1
                        var packet = packet
                        packet.sequenceNumber = tap.count
                        feed(tap.input, packet, payload)
                    }
                }
                state.taps[name] = tap
            }
            return true
        }
        if !isFed { end() }
    }
}

/// A picture, and when it came.
struct TimedPicture {
    let picture: IngestPicture
    let arrival: MonotonicTime

    /// Hands out its packets as the transcoder takes them, without a number, and their payloads.
    func forEachPacket(_ codec: InputCodec, _ body: (InputPacket, Span<UInt8>) -> Void) {
        for (index, packet) in picture.packets.enumerated() where packet.count >= RTPHeader.fixedLength {
            let input = InputPacket(
                sequenceNumber: 0, timestamp: picture.timestamp, marker: index == picture.packets.count - 1,
                codec: codec, isEntryPoint: picture.isKeyFrame && index == 0, arrival: arrival,
                captured: picture.captured)
            body(input, packet.span.extracting(RTPHeader.fixedLength..<packet.count))
        }
    }
}

/// The pictures of a node's publishers that viewers get others for, by session.
final class OriginalPictures: Sendable {
    private let pictures = Mutex<[SessionID: OriginalPicture]>([:])

    func begin(
        _ session: SessionID, _ codec: VideoCodec, by transcoder: TranscoderSupervisor
    ) -> OriginalPicture {
        let picture = OriginalPicture(codec) { transcoder.feed($0, $1, payload: $2) }
        pictures.withLock { $0[session] = picture }
        return picture
    }

    func end(_ session: SessionID) {
        pictures.withLock { $0.removeValue(forKey: session) }?.end()
    }

    /// Nil where a session has none, or none that can be passed on.
    subscript(_ session: SessionID) -> OriginalPicture? {
        let picture = pictures.withLock { $0[session] }
        return picture?.hasEnded == false ? picture : nil
    }
}
