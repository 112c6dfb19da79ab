import Base

/// Something that the transcoder does: the composition of a stream, say.
///
/// Called by the thread that reads what the server says, which must not be held up: whoever decodes or encodes does it
/// on a queue of its own. Its end is `end`; it must report nothing after that.
package protocol TranscoderJob: AnyObject {
    /// The server has something to say, in the job's own words.
    func command(_ body: [UInt8])
    /// An input begins; its packets follow.
    /// - Parameter source: what is to be registered while it is decoded.
    func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec)
    /// A packet of an input, in the order in which the server sent them.
    func take(_ packet: InputPacket, of input: InputID)
    /// Nothing more comes of this input.
    func close(_ input: InputID)
    /// The server wants no more of the job; nothing is called after it.
    func end()
}

extension TranscoderJob {
    package func command(_ body: [UInt8]) {}
    package func open(_ input: InputID, from source: SourceKey, _ codec: InputCodec) {}
    package func take(_ packet: InputPacket, of input: InputID) {}
    package func close(_ input: InputID) {}
}

/// What a job is given.
package struct JobEnvironment: Sendable {
    /// What reports are sent under.
    package let id: JobID
    /// For packets and wishes; `report` is for the job's own words.
    package let outlet: Outlet
    /// To be told of everything that is decoded.
    package let register: DecodingRegister
    /// Of the process, for jobs that may decode the same as others do.
    let pool: DecodingPool

    /// Tells whoever began the job.
    package func report(_ body: [UInt8]) {
        outlet.send(.job(id, body))
    }
}

/// Makes jobs; what is not in here is not understood.
enum JobFactory {
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
