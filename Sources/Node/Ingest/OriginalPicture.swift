import Base
import Forwarding
import Ingest
import Synchronization
import Transcoder
import Wire

/// One publisher's pictures as the encoder made them, where viewers receive re-encoded ones.
///
/// HLS passes them to players that support the codec. That is possible only while no picture is shown before the key
/// frame that it follows (closed GOPs). The thread that reads what the publisher sends feeds it; any thread may tap
/// it. Without taps it costs nothing.
final class OriginalPicture: Sendable {
    /// An input of the transcoder that receives the pictures.
    private struct Tap {
        let input: InputID
        let ended: @Sendable (TapID) -> Void
        /// The number of packets so far, from which sequence numbers are made; 0 for a tap that has yet to get its
        /// first picture.
        var count: Int64 = 0
    }

    private struct State {
        var taps: [TapID: Tap] = [:]
        /// Set once and never reset: nothing can be tapped any more.
        var hasEnded = false
        /// The RTP timestamp of the latest key frame.
        var timestamp: UInt32?

        /// Whether a picture is shown before the key frame that was received before it: a decoder that begins with
        /// the key frame cannot decode it.
        mutating func isLeading(_ picture: IngestPicture) -> Bool {
            if picture.isKeyFrame { timestamp = picture.timestamp }
            guard let timestamp, !picture.isKeyFrame else { return false }
            // The difference as a signed number, because timestamps wrap around.
            return Int32(bitPattern: picture.timestamp &- timestamp) <= 0
        }
    }

    /// Feeds a packet to an input of the transcoder.
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

    /// Feeds all pictures to an input of the transcoder, beginning with the latest key frame.
    /// - Parameter ended: called once, when the tap is closed or no more pictures come; it may run on the publisher's
    ///   thread, so it must not block.
    /// - Returns: false if no pictures come any more; then `ended` is not called.
    func open(_ tap: TapID, into input: InputID, ended: @escaping @Sendable (TapID) -> Void) -> Bool {
        state.withLock { state in
            guard !state.hasEnded else { return false }
            state.taps[tap] = Tap(input: input, ended: ended)
            return true
        }
    }

    /// Closes a tap, which calls its `ended`.
    /// - Returns: false if the tap is not open here.
    func close(_ tap: TapID) -> Bool {
        let closed = state.withLock { $0.taps.removeValue(forKey: tap) }
        closed?.ended(tap)
        return closed != nil
    }

    /// Whether a tap is open here.
    func has(_ tap: TapID) -> Bool { state.withLock { $0.taps[tap] != nil } }

    /// Ends all taps, and refuses new ones.
    func end() {
        let taps = state.withLock { state in
            defer { state = State(hasEnded: true) }
            return state.taps
        }
        // Called without the lock, because they may call back.
        for (name, tap) in taps { tap.ended(name) }
    }

    /// Feeds a picture to each tap, or ends all taps if the picture is shown before the key frame that it follows.
    /// - Parameter group: all pictures since the latest key frame, with this one last, for taps that begin. Empty if
    ///   they were too many bytes to be kept: new taps then wait for the next key frame.
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

/// A picture and the time at which it was received.
struct TimedPicture {
    let picture: IngestPicture
    let arrival: MonotonicTime

    /// Calls `body` with each packet in the form that the transcoder expects, without a sequence number, and with its
    /// payload.
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

/// The original pictures of a node's publishers, by session; used by the publishers' threads and by HLS.
final class OriginalPictures: Sendable {
    private let pictures = Mutex<[SessionID: OriginalPicture]>([:])

    /// Registers a session's original pictures, to be fed by the caller.
    func begin(
        _ session: SessionID, _ codec: VideoCodec, by transcoder: TranscoderSupervisor
    ) -> OriginalPicture {
        let picture = OriginalPicture(codec) { transcoder.feed($0, $1, payload: $2) }
        pictures.withLock { $0[session] = picture }
        return picture
    }

    /// Removes a session's original pictures and ends their taps.
    func end(_ session: SessionID) {
        pictures.withLock { $0.removeValue(forKey: session) }?.end()
    }

    /// Nil if the session has none, or if they cannot be passed on any more.
    subscript(_ session: SessionID) -> OriginalPicture? {
        let picture = pictures.withLock { $0[session] }
        return picture?.hasEnded == false ? picture : nil
    }
}
