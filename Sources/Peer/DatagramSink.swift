import Base
import Crypto

/// Takes datagrams that want to leave, without saying how they do.
///
/// `Net` writes them into a batch for `sendmmsg`; simulations put them on a network of their own. Generic, never
/// existential, so that a call costs nothing.
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
    /// The sink makes the tags that are missing.
    /// - Parameters:
    ///   - capacity: of each, at most 1,500 bytes.
    ///   - write: gets the number of the datagram; a length of 0 leaves it out.
    mutating func append(
        _ count: Int, to destination: TransportAddress, capacity: Int,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    )
}

extension DatagramSink where Self: ~Copyable {
    package mutating func append(
        _ count: Int, to destination: TransportAddress, capacity: Int,
        _ write: (Int, inout MutableSpan<UInt8>) -> EncryptedPacket
    ) {
        for number in 0..<count {
            append(to: destination, capacity: capacity) { write(number, &$0).complete(&$0) }
        }
    }

    /// Queues a datagram that is complete already.
    package mutating func append(_ bytes: [UInt8], to destination: TransportAddress) {
        append(to: destination, capacity: bytes.count) { buffer in
            let length = min(bytes.count, buffer.count)
            for index in 0..<length { buffer[index] = bytes[index] }
            return length
        }
    }
}
