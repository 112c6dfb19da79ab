import Foundation

/// Makes WebRTC connections for this library, which contains no media stack of its own.
///
/// `HeadlessEngine` of `RostrumClientHeadless` is an engine for Linux without cameras and loudspeakers. On Apple's
/// systems an app implements one with the WebRTC framework of its choice. Such a framework captures and plays media
/// itself, so its engine leaves `packets` empty.
public protocol MediaEngine: Sendable {
    /// Creates a connection with these m-lines, in this order, all of them bundled.
    /// - Throws: any error that describes why there is none.
    func makeConnection(_ lines: [MediaLine]) async throws -> any MediaConnection
}

/// One WebRTC connection, from its offer on.
public protocol MediaConnection: Sendable {
    /// Events of the connection, for one reader; the buffer is bounded.
    var events: AsyncStream<MediaEvent> { get }
    /// Received packets, for one reader; the buffer is bounded and keeps the latest. Empty if the engine plays media
    /// itself.
    var packets: AsyncStream<MediaPacket> { get }

    /// The SDP offer; called once, before everything else.
    func makeOffer() async throws -> String
    /// Applies the server's answer.
    func accept(answer: String) async throws
    /// Sends media; what cannot be sent now is dropped, because later it would be too late.
    func send(_ packet: MediaPacket) async
    /// Sends a text on the control channel (negotiated, ID 0).
    /// - Throws: if there is no control channel, or it is not open.
    func say(_ message: String) async throws
    /// Closes the connection, notifying the server; `events` and `packets` end.
    func close() async
}

/// One m-line of an offer.
public enum MediaLine: Equatable, Sendable {
    case sendAudio
    /// - `codec`: the name in SDP: `VP8`, `VP9`, `H264` or `AV1`.
    case sendVideo(codec: String)
    case receiveAudio
    case receiveVideo
    /// A data channel for control messages, negotiated with ID 0.
    case control
}

/// An event of a media connection.
public enum MediaEvent: Equatable, Sendable {
    /// Media can flow.
    case connected
    /// The control channel can be used.
    case controlOpened
    /// A text on the control channel.
    case message(String)
    /// A receiver needs a key frame of what is sent on the m-line with this mid.
    case keyFrameWanted(mid: String)
    /// The connection has ended, and only a new one can replace it; the text is for logs.
    case lost(String)
}

/// An RTP packet without its header.
public struct MediaPacket: Equatable, Sendable {
    /// Number of the m-line in the offer, starting with 0.
    public var mid: String
    /// The name in SDP: `opus`, `VP8`, `VP9`, `H264` or `AV1`; may change from packet to packet.
    public var codec: String
    /// In the codec's RTP payload format; for Opus that is the Opus packet itself.
    /// - Source: RFC 7587 (Opus), RFC 7741 (VP8), RFC 9628 (VP9), RFC 6184 (H.264); AV1's RTP specification.
    public var payload: [UInt8]
    /// In ticks of 48 kHz for Opus and of 90 kHz for video; wraps at 32 bits.
    public var timestamp: UInt32
    /// Whether this is the last packet of a picture.
    public var marker: Bool
    /// Extended beyond 16 bits; gaps are lost packets, and packets may arrive out of order.
    ///
    /// Ignored for packets that are sent.
    public var sequenceNumber: Int64
    /// Whether a decoder can start with this packet.
    public var startsKeyFrame: Bool
    /// When the media was captured, in seconds since 1970 by the server's clock, which audio and video share; nil until
    /// the server has reported it.
    public var captured: Double?
    /// Level of audio that is sent, in -dBov: 0 for the loudest, 127 for silence; nil to send none.
    ///
    /// The server determines by it who is speaking.
    /// - Source: RFC 6464 §3.
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
