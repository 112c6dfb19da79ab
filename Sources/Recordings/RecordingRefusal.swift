/// Why something that was asked of recordings was not done.
package enum RecordingRefusal: Error, Equatable, Sendable {
    /// This server keeps nothing on a disk, or decodes nothing.
    case unavailable
    case notLive
    case diskFull
    case storage
    case overloaded
    case unknownRecording
    /// Only what has ended can be removed.
    case underWay
}
