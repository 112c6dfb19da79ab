import Base

/// How long is kept what is over; what is nil is kept until somebody deletes it.
package struct RetentionSettings: Equatable, Sendable {
    /// In seconds after a stream's end, with all that is known of it; one that has recordings stays as long as they do.
    package var streams: Int?
    /// In seconds after a recording's end.
    package var recordings: Int?
    /// In seconds after a clip was made.
    package var clips: Int?
    /// In seconds after a comment was written; in a stream that has ended, after its end.
    package var comments: Int?

    package init() {}

    /// Between two looks: what is kept for a month may stay a minute longer.
    var interval: Duration {
        let shortest = [streams, recordings, clips, comments].compactMap(\.self).min() ?? 600
        return .seconds(min(max(shortest / 10, 1), 60))
    }
}
