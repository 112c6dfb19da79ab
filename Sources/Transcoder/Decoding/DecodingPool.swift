import Base
import Codecs
import Synchronization
import Wire

/// Lets jobs that take the same pictures decode each of them once.
///
/// What a decoder makes of a frame follows from that frame and those before it, back to a key frame. So nobody has to
/// say who belongs together: whoever comes with a key frame that another one came with, and with the same frames after
/// it, is given what was made of them, at once and however late it is; whoever comes first decodes. Who has another
/// frame than the others had goes on with the next key frame.
final class DecodingPool: Sendable {
    /// What is decoded, and what is to blame for it.
    struct Source: Hashable, Sendable {
        let key: SourceKey
        let codec: VideoCodec
    }

    private struct Entry {
        weak var decoders: SharedDecoders?
    }

    /// Of sources that somebody decodes; those that nobody does any longer go when another one comes.
    private let sources = Mutex<[Source: Entry]>([:])

    /// A decoder for one who takes a source's pictures.
    /// - Parameter make: what libraries do for it; is called where nobody has decoded the same frames, and gives nil
    ///   where the codec cannot be decoded here.
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

    /// Sources that are known.
    var count: Int { sources.withLock { $0.count } }
}

/// One who takes the pictures of a source that others may take, too; used by one thread.
final class PooledDecoder: AssembledFrameDecoder {
    private let decoders: SharedDecoders
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

/// The decoders of one source: one, as long as all who take it come with the same frames.
///
/// Whoever comes while another decodes waits, and has the same picture then without work of its own.
private final class SharedDecoders: Sendable {
    fileprivate struct State {
        var chains: [DecodedChain] = []
        var lastName: UInt64 = 0
        /// Whether the last one who wanted a decoder got none: the library cannot decode this codec here.
        var isUnavailable = false
    }

    private let make: @Sendable () -> (any PictureDecoder)?
    private let state = Mutex(State())

    init(_ make: @escaping @Sendable () -> (any PictureDecoder)?) { self.make = make }

    /// For one who decodes.
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

    /// Another one in each life of the process, so that nobody can make two frames that are taken for each other.
    private static func fingerprint(of frame: AssembledFrame) -> Int {
        var hasher = Hasher()
        // A film that is played again and again has the same frames at other times.
        hasher.combine(frame.timestamp)
        hasher.combine(frame.bytes.count)
        unsafe frame.bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}

extension SharedDecoders.State {
    mutating func leave(_ name: UInt64) {
        for index in chains.indices where chains[index].has(name) { chains[index].leave(name) }
        chains.removeAll(where: \.isEmpty)
    }

    mutating func decode(
        _ frame: AssembledFrame, _ fingerprint: Int, as name: UInt64,
        _ make: @Sendable () -> (any PictureDecoder)?
    ) -> DecodedChain.Outcome {
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
        // Others had another frame here, if anybody had one before. What this one shows without them nobody knows.
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
