import Foundation

/// Makes WebRTC connections: what stands between this library and media.
///
/// `HeadlessEngine` of `RostrumClientHeadless` is one for Linux without cameras and loudspeakers. On Apple's systems an
/// app writes one over the WebRTC framework of its choice, which captures and plays by itself: it leaves `packets`
/// empty.
public protocol MediaEngine: Sendable {
    /// Begins a connection with these m-lines, in this order, all of them bundled.
    /// - Throws: whatever says why there is none.
    func makeConnection(_ lines: [MediaLine]) async throws -> any MediaConnection
}

/// One WebRTC connection, from its offer on.
public protocol MediaConnection: Sendable {
    /// What happens to it, for one reader; bounded.
    var events: AsyncStream<MediaEvent> { get }
    /// What is received, for one reader; bounded, of which the latest wait. Empty where the engine plays by itself.
    var packets: AsyncStream<MediaPacket> { get }

    /// An SDP offer; called once, first.
    func makeOffer() async throws -> String
    /// Goes on with the server's answer.
    func accept(answer: String) async throws
    /// Sends media; what cannot be sent now is lost, as it is late afterwards.
    func send(_ packet: MediaPacket) async
    /// Sends a text on the control channel (negotiated, id 0).
    /// - Throws: where there is none, or it is not open.
    func say(_ message: String) async throws
    /// Says goodbye; `events` and `packets` end.
    func close() async
}

/// One m-line of an offer.
public enum MediaLine: Equatable, Sendable {
    case sendAudio
    /// - `codec`: as SDP names it: `VP8`, `VP9`, `H264` or `AV1`.
    case sendVideo(codec: String)
    case receiveAudio
    case receiveVideo
    /// A data channel for control messages, negotiated as number 0.
    case control
}

/// What happens to a media connection.
public enum MediaEvent: Equatable, Sendable {
    /// Media may flow.
    case connected
    /// The control channel can be used.
    case controlOpened
    /// A text on the control channel.
    case message(String)
    /// Somebody needs a key frame of what is sent on the m-line of that mid.
    case keyFrameWanted(mid: String)
    /// It is over: only a new connection can help. In words, for logs.
    case lost(String)
}

/// One RTP packet, without header.
public struct MediaPacket: Equatable, Sendable {
    /// The m-line: its number in the offer, from 0 on.
    public var mid: String
    /// As SDP names it: `opus`, `VP8`, `VP9`, `H264` or `AV1`; may change from packet to packet.
    public var codec: String
    /// As the codec's RTP format has it (RFC 7587, 7741, 9628, 6184, AV1's): of Opus that is the packet itself.
    public var payload: [UInt8]
    /// In ticks of 48 kHz for Opus, of 90 kHz for video; wraps.
    public var timestamp: UInt32
    /// Whether it is the last packet of a picture.
    public var marker: Bool
    /// Counts on beyond 16 bits, without gaps but where packets are lost; they may come out of order.
    ///
    /// Of what is sent nobody looks at it.
    public var sequenceNumber: Int64
    /// Whether a decoder that saw nothing before can begin here.
    public var startsKeyFrame: Bool
    /// When the media was captured by the server's clock, the same for sound and picture, in seconds since 1970; nil
    /// before the server told.
    public var captured: Double?
    /// Of sound that is sent: 0 for the loudest to 127 for silence (-dBov, RFC 6464), by which the server knows who
    /// speaks; nil to say nothing.
    public var audioLevel: UInt8?

    public init(
        mid: String, codec: String, payload: [UInt8], timestamp: UInt32, marker: Bool = false,
        sequenceNumber: Int64 = 0, startsKeyFrame: Bool = false, captured: Double? = nil,
        audioLevel: UInt8? = nil
    ) {
        self.mid = mid
        self.codec = codec
        self.payload = payload
        self.timestamp = timestamp
        self.marker = marker
        self.sequenceNumber = sequenceNumber
        self.startsKeyFrame = startsKeyFrame
        self.captured = captured
        self.audioLevel = audioLevel
    }
}
