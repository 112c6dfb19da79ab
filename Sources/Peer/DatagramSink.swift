import Base
import Crypto

/// Where outgoing datagrams go, independent of how they are sent.
///
/// `Net` writes them into a batch for `sendmmsg`; simulations put them on a simulated network. Used as a generic
/// parameter, never as an existential, so that calls are specialized and cost nothing extra.
package protocol DatagramSink: ~Copyable {
    /// Lets `write` fill up to `capacity` bytes in place and queues the datagram.
    ///
    /// - Parameters:
    ///   - capacity: at most 1,500 bytes.
    ///   - write: returns the length of the datagram; if it throws or returns 0, nothing is queued.
    mutating func append<Failure: Error>(
        to destination: TransportAddress,
        capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure)

    /// Lets `write` fill several datagrams for one destination, which should leave together.
    ///
    /// The sink computes authentication tags that `write` left out.
    /// - Parameters:
    ///   - capacity: of each datagram, at most 1,500 bytes.
    ///   - write: receives the index of the datagram; a length of 0 skips it.
    mutating func append(
        _ count: Int, to destination: TransportAddress, capacity: Int,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    )
}

extension DatagramSink where Self: ~Copyable {
    /// Queues the datagrams one by one and completes each tag immediately, for sinks without batches.
    package mutating func append(
        _ count: Int, to destination: TransportAddress, capacity: Int,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        for number in 0..<count {
            append(to: destination, capacity: capacity) { write(number, &$0).complete(&$0) }
        }
    }

    /// Queues a datagram that is already complete.
    package mutating func append(_ bytes: [UInt8], to destination: TransportAddress) {
        append(to: destination, capacity: bytes.count) { buffer in
            let length = min(bytes.count, buffer.count)
            for index in 0..<length { buffer[index] = bytes[index] }
            return length
        }
    }
}
