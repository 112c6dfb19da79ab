import Wire

/// The m-line of a session's data channels: one SCTP association next to the media.
/// - Source: RFC 8841 §5 and §6, RFC 8831.
package struct DataChannelPlan: Equatable, Sendable {
    /// The mid of the m-line `application`.
    package var mid: String
    /// Longest message that the peer accepts, in bytes.
    package var maximumMessage: Int

    /// Longest message that we accept, in bytes; as much as Chrome and Firefox send in one message.
    package static let maximumReceived = 262_144
    /// The port in all descriptions of other implementations; usrsctp is set to no other.
    static let port: UInt16 = 5_000
    /// The maximum in a description without `a=max-message-size` (RFC 8841 §6).
    private static let defaultMaximum: UInt64 = 65_536
    private static let format = "webrtc-datachannel"

    /// - Parameter maximumMessage: the peer's limit in bytes.
    package init(mid: String, maximumMessage: Int = Self.maximumReceived) {
        self.mid = mid
        self.maximumMessage = maximumMessage
    }

    /// Reads one side's m-line.
    /// - Returns: nil if it is not a data channel m-line of a kind that is supported.
    /// - Throws: if the port or the message size is malformed.
    package init?(_ media: MediaDescription, mid: String) throws(WireError) {
        guard media.type == .application, media.formats == [Self.format],
            media.transport == "UDP/DTLS/SCTP" || media.transport == "TCP/DTLS/SCTP",
            try media.sctpPort() ?? Self.port == Self.port
        else { return nil }
        let maximum = try media.maximumMessageSize() ?? Self.defaultMaximum
        self.init(
            mid: mid,
            maximumMessage: maximum == 0
                ? Self.maximumReceived : Int(clamping: min(maximum, UInt64(Self.maximumReceived))))
    }

    /// The m-line of our answer, or of an ICE fragment.
    package static func section(answering offered: MediaDescription?) -> MediaDescription {
        var section = MediaDescription(
            media: MediaDescription.MediaType.application.rawValue, port: 9,
            transport: offered?.transport ?? "UDP/DTLS/SCTP", formats: [format])
        section.fields = [.noAddress]
        return section
    }

    /// Appends our SCTP port and the longest message that we accept.
    package static func appendLimits(to section: inout MediaDescription) {
        section.append(.sctpPort, String(port))
        section.append(.maxMessageSize, String(maximumReceived))
    }
}
