import Forwarding

extension RecordingDesk {
    /// What viewers of a stream receive, by its sources.
    package struct Programme: Equatable, Sendable {
        /// Nil for sound alone.
        package var video: ProgrammeSource?
        /// Nil for a picture alone.
        package var audio: ProgrammeSource?

        package init(video: ProgrammeSource?, audio: ProgrammeSource?) {
            self.video = video
            self.audio = audio
        }
    }
}
