import Wire

extension RTPHeaderWriter {
    /// Writes a packet's dependency descriptor for a receiver that negotiated an ID for it.
    ///
    /// It must be the first element, because an element that needs the two-byte form moves all elements before it.
    /// - Parameters:
    ///   - number: the frame number in the receiver's numbering.
    ///   - spatialLimit: the highest spatial layer that is sent; only key frames contain it.
    mutating func pass(
        descriptor range: Range<Int>?, as id: UInt8?, number: UInt16?, spatialLimit: UInt8,
        from source: Span<UInt8>, into buffer: inout MutableSpan<UInt8>
    ) throws(WireError) {
        guard let range, let id else { return }
        try source.require(range)
        if spatialLimit < .max,
            let limited = DependencyDescriptor.limiting(
                source.extracting(range), toSpatialLayer: spatialLimit)
        {
            try append(id: id, copying: limited.span, 0..<limited.count, into: &buffer)
            guard let number else { return }
            let value = position - limited.count
            return try buffer.store(number, at: value + DependencyDescriptor.frameNumberOffset)
        }
        try append(id: id, copying: source, range, into: &buffer)
        guard let number else { return }
        // The first element's value is the last thing written so far.
        let value = position - range.count
        try buffer.store(number, at: value + DependencyDescriptor.frameNumberOffset)
    }
}
