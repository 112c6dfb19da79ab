import Base

/// How long ended streams and their content are kept; what is nil is kept until it is deleted by request.
package struct RetentionSettings: Equatable, Sendable {
    /// In seconds after a stream's end, with everything that belongs to it.
    ///
    /// A stream with recordings stays as long as they do.
    package var streams: Int?
    /// In seconds after a recording's end.
    package var recordings: Int?
    /// In seconds after a clip was made.
    package var clips: Int?
    /// In seconds after a comment was written; in an ended stream, after its end.
    package var comments: Int?

    package init() {}

    /// The time between two turns with nothing left to delete: a tenth of the shortest time, from 1 to 60 s.
    ///
    /// What is kept for a month may stay a minute longer.
    var interval: Duration {
        let shortest = [streams, recordings, clips, comments].compactMap(\.self).min() ?? 600
        return .seconds(min(max(shortest / 10, 1), 60))
    }
}
