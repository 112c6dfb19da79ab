import Wire

/// The m-line of a session's data channels: one SCTP association beside the media.
/// - Source: RFC 8841 §5 and §6, RFC 8831.
package struct DataChannelPlan: Equatable, Sendable {
    /// Of the m-line `application`.
    package var mid: String
    /// Longest message that the peer takes, in bytes.
    package var maximumMessage: Int

    /// Longest message that we take, in bytes; as much as Chrome and Firefox send at once.
    package static let maximumReceived = 262_144
    /// In all descriptions that exist; usrsctp is given no other.
    static let port: UInt16 = 5_000
    /// What a description without `a=max-message-size` means (RFC 8841 §6).
    private static let defaultMaximum: UInt64 = 65_536
    private static let format = "webrtc-datachannel"

    package init(mid: String, maximumMessage: Int = Self.maximumReceived) {
        self.mid = mid
        self.maximumMessage = maximumMessage
    }

    /// Reads one side's m-line; nil if it is not one of data channels as we know them.
    package init?(_ media: MediaDescription, mid: String) throws(WireError) {
        guard media.kind == .application, media.formats == [Self.format],
            media.transport == "UDP/DTLS/SCTP" || media.transport == "TCP/DTLS/SCTP",
            try media.sctpPort() ?? Self.port == Self.port
        else { return nil }
        let maximum = try media.maximumMessageSize() ?? Self.defaultMaximum
        self.init(
            mid: mid,
            maximumMessage: maximum == 0
                ? Self.maximumReceived : Int(clamping: min(maximum, UInt64(Self.maximumReceived))))
    }

    /// The m-line that says what we take.
    package static func section(answering offered: MediaDescription?) -> MediaDescription {
        var section = MediaDescription(
            media: MediaKind.application.rawValue, port: 9,
            transport: offered?.transport ?? "UDP/DTLS/SCTP", formats: [format])
        section.fields = [.noAddress]
        return section
    }

    /// What an answer says: our SCTP port, and the longest message we take.
    package static func appendLimits(to section: inout MediaDescription) {
        section.append(.sctpPort, String(port))
        section.append(.maxMessageSize, String(maximumReceived))
    }
}
