import Base
import Codecs
import Synchronization
import Wire

/// Lets jobs with the same pictures decode each of them only once.
///
/// The result of decoding a frame depends only on that frame and those before it, back to a key frame. So jobs need
/// not declare which of them belong together. A job that presents a key frame which another job presented, and the
/// same frames after it, gets the existing results immediately, however late it is; the first job decodes. A job whose
/// frames differ from those of the others joins them at the next key frame.
final class DecodingPool: Sendable {
    /// The bitstream, and its codec.
    struct Source: Hashable, Sendable {
        let key: SourceKey
        let codec: VideoCodec
    }

    /// Weak, so that decoders end with the last job that uses them.
    private struct Entry {
        weak var decoders: SharedDecoders?
    }

    /// Sources in use; entries without a job are removed when another source is added.
    private let sources = Mutex<[Source: Entry]>([:])

    /// Returns a decoder for one job that reads a source.
    /// - Parameter make: creates the decoder if no job has decoded the same frames; nil if the codec cannot be
    ///   decoded.
    func decoder(
        of source: Source, make: @escaping @Sendable () -> (any PictureDecoder)?
    ) -> PooledDecoder {
        let decoders = sources.withLock { sources in
            if let decoders = sources[source]?.decoders { return decoders }
            sources = sources.filter { $0.value.decoders != nil }
            let decoders = SharedDecoders(make)
            sources[source] = Entry(decoders: decoders)
            return decoders
        }
        return PooledDecoder(decoders)
    }

    /// Known sources; for tests.
    var count: Int { sources.withLock { $0.count } }
}

/// One job's access to the shared decoders of a source; used by one thread.
final class PooledDecoder: AssembledFrameDecoder {
    private let decoders: SharedDecoders
    /// Identifies this member in the chains.
    private let name: UInt64

    fileprivate init(_ decoders: SharedDecoders) {
        self.decoders = decoders
        name = decoders.makeName()
    }

    deinit { decoders.leave(name) }

    func decode(_ frame: AssembledFrame) throws(CodecError) -> Picture? {
        try decoders.decode(frame, as: name).get()
    }
}

/// The decoders of one source: a single one while all jobs present the same frames.
///
/// The lock is held while decoding. A job that presents the same frame meanwhile waits, and then gets the picture
/// without decoding.
private final class SharedDecoders: Sendable {
    /// All that the lock protects.
    fileprivate struct State {
        var chains: [DecodedChain] = []
        var lastName: UInt64 = 0
        /// Whether the last request for a decoder failed: the library cannot decode this codec.
        var isUnavailable = false
    }

    private let make: @Sendable () -> (any PictureDecoder)?
    private let state = Mutex(State())

    init(_ make: @escaping @Sendable () -> (any PictureDecoder)?) { self.make = make }

    /// A number for a new member.
    func makeName() -> UInt64 {
        state.withLock { state in
            state.lastName += 1
            return state.lastName
        }
    }

    func leave(_ name: UInt64) {
        state.withLock { state in state.leave(name) }
    }

    func decode(_ frame: AssembledFrame, as name: UInt64) -> DecodedChain.Outcome {
        let fingerprint = Self.fingerprint(of: frame)
        return state.withLock { [make] state in state.decode(frame, fingerprint, as: name, make) }
    }

    /// A hash of time stamp and content.
    ///
    /// Randomly seeded per process, so that a publisher cannot construct two frames with the same fingerprint.
    private static func fingerprint(of frame: AssembledFrame) -> Int {
        var hasher = Hasher()
        // A video played in a loop has the same frames at other times.
        hasher.combine(frame.timestamp)
        hasher.combine(frame.bytes.count)
        unsafe frame.bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}

extension SharedDecoders.State {
    /// Removes a member from its chain, and chains without members.
    mutating func leave(_ name: UInt64) {
        for index in chains.indices where chains[index].has(name) { chains[index].leave(name) }
        chains.removeAll(where: \.isEmpty)
    }

    /// Returns the result for a member's next frame, decoding it only if no other member has.
    mutating func decode(
        _ frame: AssembledFrame, _ fingerprint: Int, as name: UInt64,
        _ make: @Sendable () -> (any PictureDecoder)?
    ) -> DecodedChain.Outcome {
        // In order of preference: an existing result in the own chain, joining another chain at a key frame, appending
        // to the own chain, and a new chain.
        let own = chains.firstIndex { $0.has(name) }
        if let own, let outcome = chains[own].take(fingerprint, as: name) { return outcome }
        if frame.isKeyFrame {
            for index in chains.indices where chains[index].join(name, at: fingerprint) {
                if let own, own != index { chains[own].leave(name) }
                defer { chains.removeAll(where: \.isEmpty) }
                return chains[index].take(fingerprint, as: name) ?? .failure(.failed)
            }
        }
        if let own, chains[own].mayAppend(name) { return chains[own].append(frame, fingerprint, as: name) }
        leave(name)
        // The member's frame differs from the chain's, so only a key frame can be decoded.
        guard frame.isKeyFrame else { return isUnavailable ? .success(nil) : .failure(.failed) }
        let decoder = make()
        isUnavailable = decoder == nil
        guard let decoder else { return .success(nil) }
        var chain = DecodedChain(decoder)
        let outcome = chain.append(frame, fingerprint, as: name)
        chains.append(chain)
        return outcome
    }
}
