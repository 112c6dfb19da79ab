import Base

/// A job of the transcoder, such as the composition of a stream.
///
/// All methods are called by the thread that reads the server's messages and must return quickly: decoding and
/// encoding belong on a thread or queue of the job. After `end` a job must not report anything.
package protocol TranscoderJob: AnyObject {
    /// Processes a command, in the format of the job's kind.
    func command(_ body: [UInt8])
    /// Begins an input; its packets follow.
    /// - Parameter source: to be registered while the input is decoded.
    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec)
    /// Processes a packet of an input, in the order in which the server sent them.
    func take(_ packet: InputPacket, of input: InputID)
    /// Ends an input.
    func close(_ input: InputID)
    /// Ends the job; no method is called afterwards.
    func end()
}

extension TranscoderJob {
    package func command(_ body: [UInt8]) {}
    package func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {}
    package func take(_ packet: InputPacket, of input: InputID) {}
    package func close(_ input: InputID) {}
}

/// What a job needs of the process.
package struct JobEnvironment: Sendable {
    /// Identifies the job in its reports.
    package let id: JobID
    /// For packets and key frame requests; `report` is for the job's own reports.
    package let outlet: Outlet
    /// Has to be used around all decoding.
    package let register: DecodingRegister
    /// Shared by jobs that may decode the same pictures.
    let pool: DecodingPool

    /// Sends a report to the owner of the job.
    package func report(_ body: [UInt8]) {
        outlet.send(.job(id, body))
    }
}

/// Creates jobs.
enum JobFactory {
    /// Creates a job of a kind; nil for a request that cannot be parsed.
    static func make(_ kind: JobKind, _ body: [UInt8], _ environment: JobEnvironment) -> (any TranscoderJob)?
    {
        switch kind {
        case .preview: PreviewJob(body, environment)
        case .composition: CompositionJob(body, environment)
        case .card: CardJob(body, environment)
        case .pausePicture: PausePictureJob(body, environment)
        case .recording: RecordingJob(body, environment)
        case .rendition: RenditionJob(body, environment)
        case .sound: SoundJob(body, environment)
        case .conversion: ConversionJob(environment)
        case .packaging: PackagingRequest(body).map { PackagingJob($0, environment) }
        case .clips: ClipJob(environment)
        }
    }
}
