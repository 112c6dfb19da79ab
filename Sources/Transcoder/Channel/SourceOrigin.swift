import Base

/// The publisher of a bitstream, and the purpose for which it is decoded.
///
/// A bitstream that crashes the transcoder is refused for its purpose only, so purposes are separate origins.
package enum SourceOrigin: Hashable, Sendable {
    /// A stream's programme, decoded for previews; no session if the server composes it.
    case preview(SessionID?, StreamID)
    /// The m-line of a session, decoded for a composition or for renditions.
    case composition(SessionID, mid: String)
    /// A stream's programme, recorded; no session if the server composes it.
    ///
    /// Separate from the others because a recording decodes nothing: it continues with sources that previews and
    /// compositions refuse.
    case recording(SessionID?, StreamID)
    /// A stream's programme, decoded for HLS; no session if the server composes it.
    case packaging(SessionID?, StreamID)
    /// The AAC of an RTMP or SRT publisher.
    case sound(SessionID)
    /// The pictures of an RTMP or SRT publisher that browsers do not show unchanged.
    case picture(SessionID)
    /// The still that a stream's host chose; another file of the same host counts as the same source.
    case pausePicture(StreamID)
}

extension SourceKey {
    /// The key of an origin, stable for the lifetime of the process.
    package init(_ origin: SourceOrigin) {
        self.init(number: UInt64(bitPattern: Int64(origin.hashValue)))
    }
}
