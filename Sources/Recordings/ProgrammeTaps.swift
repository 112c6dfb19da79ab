import Forwarding
import Transcoder

/// Taps on what viewers get of streams: what recordings are given by the node.
package protocol ProgrammeTaps: Sendable {
    /// Has all that a source sends fed to an input of the transcoder, video from a key frame on.
    /// - Parameter ended: called once, on a worker's thread, which must not wait: the tap is closed, or its track has
    ///   ended.
    /// - Returns: nil if the source cannot be tapped.
    func open(
        _ source: ProgrammeSource, into input: InputID, ended: @escaping @Sendable (TapID) -> Void
    ) -> TapID?

    /// Ends it; nothing happens to one that has ended.
    func close(_ tap: TapID, of source: ProgrammeSource)

    /// Has the publisher make a key frame.
    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource)
}
