import Forwarding
import Transcoder

/// Access to what viewers of a stream receive; the node provides it to recordings.
package protocol ProgrammeTaps: Sendable {
    /// Feeds everything that a source sends to an input of the transcoder; video begins with a key frame.
    /// - Parameter ended: called once, on a worker's thread, when the tap is closed or its track ends; must not block.
    /// - Returns: nil if the source cannot be tapped.
    func open(
        _ source: ProgrammeSource, into input: InputID, ended: @escaping @Sendable (TapID) -> Void
    ) -> TapID?

    /// Closes a tap; does nothing if it has ended.
    func close(_ tap: TapID, of source: ProgrammeSource)

    /// Requests a key frame from the publisher.
    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource)
}
