import Base

/// Where a bitstream comes from, and what it is read for.
package enum SourceOrigin: Hashable, Sendable {
    /// The picture of a stream's programme, as its previews show it; no session where the server makes it.
    case preview(SessionID?, StreamID)
    /// What a session publishes on an m-line, decoded for a composition or for renditions.
    case composition(SessionID, mid: String)
    /// A stream's programme; no session where the server makes it.
    ///
    /// By itself, because a recording decodes nothing: it goes on with what previews and compositions are refused.
    case recording(SessionID?, StreamID)
    /// A stream's programme, decoded for HLS; no session where the server makes it.
    case packaging(SessionID?, StreamID)
    /// The sound of a publisher by RTMP.
    case sound(SessionID)
    /// The picture of a publisher by RTMP, where browsers do not show it as it is.
    case picture(SessionID)
    /// The picture that the host chose, whichever file that is: another file of the same host is no other source.
    case pausePicture(StreamID)
}

extension SourceKey {
    /// The key of an origin: the same for as long as the process lives.
    package init(_ origin: SourceOrigin) {
        self.init(number: UInt64(bitPattern: Int64(origin.hashValue)))
    }
}
