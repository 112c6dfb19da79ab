/// Defaults for the samples of a track fragment, for fields that their run does not contain.
/// - Source: ISO/IEC 14496-12 §8.8.3 (trex), §8.8.7 (tfhd).
package struct MP4SampleDefaults: Equatable, Sendable {
    /// In ticks of the track's time scale.
    package private(set) var duration: UInt64 = 0
    /// In bytes.
    package private(set) var size: UInt64 = 0
    /// As in `trun`; see `MP4TrackRun.Sample.isSync`.
    package private(set) var flags: UInt64 = 0

    /// The defaults where a file declares none.
    package init() {}

    /// Reads the defaults of a track.
    /// - Parameter trex: a Track Extends Box.
    package init(trex: MP4BoxBody) {
        duration = trex.number(at: 12, count: 4)
        size = trex.number(at: 16, count: 4)
        flags = trex.number(at: 20, count: 4)
    }

    /// Reads the defaults of one fragment.
    /// - Parameters:
    ///   - tfhd: a Track Fragment Header Box.
    ///   - track: the defaults of the track, for fields that `tfhd` does not contain.
    package init(tfhd: MP4BoxBody, of track: MP4SampleDefaults) {
        self = track
        let present = tfhd.flags
        // Skip base-data-offset and sample-description-index.
        var place = 8 + (present & 0x01 != 0 ? 8 : 0) + (present & 0x02 != 0 ? 4 : 0)
        for (flag, field) in [(UInt64(0x08), \MP4SampleDefaults.duration), (0x10, \.size), (0x20, \.flags)]
        where present & flag != 0 {
            self[keyPath: field] = tfhd.number(at: place, count: 4)
            place += 4
        }
    }
}

/// The samples of a Track Fragment Run Box.
/// - Source: ISO/IEC 14496-12 §8.8.8 (trun), §8.8.3.1 (sample flags).
package struct MP4TrackRun {
    /// One sample of the run.
    package struct Sample: Equatable, Sendable {
        /// In bytes.
        package let size: UInt64
        /// In ticks of the track's time scale.
        package let duration: UInt64
        /// Ticks from decoding to presentation; negative values are in two's complement of 32 bits.
        package let compositionTimeOffset: UInt64
        fileprivate let flags: UInt64

        /// Whether a decoder can start at this sample.
        package var isSync: Bool { flags & 0x1_0000 == 0 }
    }

    private let body: MP4BoxBody
    private let flags: UInt64
    private let defaults: MP4SampleDefaults
    /// Number of samples, limited to 100,000 because samples without fields of their own take no bytes.
    package let count: Int

    /// - Parameter body: the contents of a Track Fragment Run Box.
    package init(_ body: MP4BoxBody, defaults: MP4SampleDefaults) {
        self.body = body
        self.defaults = defaults
        flags = body.flags
        count = Int(min(body.number(at: 4, count: 4), 100_000))
    }

    /// Offset of the first sample from the start of the `moof`, in bytes; nil if it follows the previous run.
    package var dataOffset: Int32? {
        flags & 0x01 != 0 ? Int32(truncatingIfNeeded: body.number(at: 8, count: 4)) : nil
    }

    /// Visits the samples in order; fields beyond the end of the box are 0.
    package func forEach(_ visit: (Sample) -> Void) {
        var place = 8 + (flags & 0x01 != 0 ? 4 : 0)
        func next() -> UInt64 {
            defer { place += 4 }
            return body.number(at: place, count: 4)
        }
        let firstFlags = flags & 0x04 != 0 ? next() : nil
        for index in 0..<count {
            let duration = flags & 0x100 != 0 ? next() : defaults.duration
            let size = flags & 0x200 != 0 ? next() : defaults.size
            let own = flags & 0x400 != 0 ? next() : defaults.flags
            let offset = flags & 0x800 != 0 ? next() : 0
            visit(
                Sample(
                    size: size, duration: duration, compositionTimeOffset: offset,
                    flags: index == 0 ? firstFlags ?? own : own))
        }
    }
}
