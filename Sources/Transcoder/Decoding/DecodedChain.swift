import Base
import Codecs

/// The results of one decoder, shared by all members that have the same frames.
///
/// Each member has its own position, and gets the results in order at its own pace. Pictures that all members have had
/// are released. Of those that slower members have not had, only the last few are kept: a member that is further
/// behind sees fewer pictures.
struct DecodedChain {
    /// The result for a frame: nil if it shows nothing, or if its picture has been released.
    typealias Outcome = Result<Picture?, CodecError>

    /// One decoded frame, and its result.
    private struct Frame {
        let fingerprint: Int
        let isKeyFrame: Bool
        var outcome: Outcome
    }

    /// Frames that are recognized: more than a cached group of pictures has, or than wait anywhere to be decoded.
    static let frameLimit = 1_024
    /// Pictures kept for slower members; each `VideoInput` keeps as many.
    static let pictureLimit = 12

    private let decoder: any PictureDecoder
    private var frames: [Frame] = []
    /// Number of the first element of `frames`; numbers count from the beginning of the chain.
    private var first = 0
    /// Number of the next frame of each member.
    private var members: [UInt64: Int] = [:]
    /// Numbers of the frames whose pictures are kept.
    private var pictured: [Int] = []
    /// Whether the decoder failed; no frame can be appended afterwards.
    private var hasFailed = false

    init(_ decoder: any PictureDecoder) { self.decoder = decoder }

    /// Number of the next frame to be appended.
    private var end: Int { first + frames.count }

    /// Whether the chain has no members.
    var isEmpty: Bool { members.isEmpty }

    func has(_ member: UInt64) -> Bool { members[member] != nil }

    /// Frames recognized now; for tests.
    var frameCount: Int { frames.count }

    /// Moves a member to a key frame that has already been decoded.
    /// - Returns: false if there is no such key frame.
    mutating func join(_ member: UInt64, at fingerprint: Int) -> Bool {
        guard !hasFailed,
            let index = frames.lastIndex(where: { $0.isKeyFrame && $0.fingerprint == fingerprint })
        else { return false }
        members[member] = first + index
        return true
    }

    /// Removes a member, and releases pictures that only it had not had.
    mutating func leave(_ member: UInt64) {
        members[member] = nil
        release()
    }

    /// Takes the result of a member's next frame; nil if the chain has another frame at that position, or none yet.
    mutating func take(_ fingerprint: Int, as member: UInt64) -> Outcome? {
        guard let next = members[member], next >= first, next < end,
            frames[next - first].fingerprint == fingerprint
        else { return nil }
        let outcome = frames[next - first].outcome
        members[member] = next + 1
        release()
        return outcome
    }

    /// Whether a member is at the end of the chain, so that its next frame can be appended.
    func mayAppend(_ member: UInt64) -> Bool { !hasFailed && members[member] == end }

    /// Decodes the next frame, for a member at the end or for the first member.
    mutating func append(_ frame: AssembledFrame, _ fingerprint: Int, as member: UInt64) -> Outcome {
        let outcome: Outcome
        do throws(CodecError) {
            outcome = .success(try decoder.decode(frame.bytes))
        } catch {
            outcome = .failure(error)
            hasFailed = true
        }
        if frames.count >= 2 * Self.frameLimit {
            frames.removeFirst(Self.frameLimit)
            first += Self.frameLimit
        }
        frames.append(Frame(fingerprint: fingerprint, isKeyFrame: frame.isKeyFrame, outcome: outcome))
        if outcome.picture != nil { pictured.append(end - 1) }
        members[member] = end
        release()
        return outcome
    }

    /// Releases pictures that no member needs.
    ///
    /// The latest picture is kept for members that join, because the next one may be far away.
    private mutating func release() {
        let slowest = members.values.min() ?? end
        while let oldest = pictured.first, pictured.count > 1,
            oldest < slowest || pictured.count > Self.pictureLimit
        {
            pictured.removeFirst()
            if oldest >= first { frames[oldest - first].outcome = .success(nil) }
        }
    }
}

extension DecodedChain.Outcome {
    /// The picture; nil for a failure, and for a frame without one.
    fileprivate var picture: Picture? { try? get() }
}
