import Base
import Dispatch
import Foundation
import Glibc
import Store

/// The pause pictures that hosts chose, on disk: one file for each stream.
///
/// All file operations run on one queue: they stay in order and block no actor.
final class PausePictureShelf: Sendable {
    private let directory: String
    private let queue = DispatchQueue(label: "pause-pictures", qos: .utility)

    /// - Parameter directory: made when it is missing.
    init(directory: String) {
        self.directory = directory
    }

    /// Returns all pictures, as far as there is room for them.
    /// - Parameters:
    ///   - limit: bytes of one picture.
    ///   - total: bytes of all pictures.
    func load(limit: Int, total: Int) async -> [StreamID: [UInt8]] {
        await run { [directory] in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
            var pictures: [StreamID: [UInt8]] = [:]
            var room = total
            // Sorted, so that it does not depend on the file system which pictures find no room.
            for name in names.sorted() {
                let path = "\(directory)/\(name)"
                // A draft of a write that was interrupted.
                guard !name.hasPrefix(".") else {
                    unlink(path)
                    continue
                }
                var status = stat()
                guard let stream = StreamID(name), stat(path, &status) == 0,
                    status.st_size <= min(limit, room),
                    let file = FileManager.default.contents(atPath: path), !file.isEmpty
                else { continue }
                room -= file.count
                pictures[stream] = Array(file)
            }
            return pictures
        }
    }

    /// Writes a stream's picture; nil removes it.
    ///
    /// An actor that calls this several times has its last picture on the disk in the end.
    /// - Returns: whether the change is durable.
    func set(
        _ file: [UInt8]?, of stream: StreamID, isolation: isolated (any Actor)? = #isolation
    ) async -> Bool {
        await run { [directory] in
            do throws(FileError) {
                guard let file else {
                    try DurableFile.remove("\(stream)", from: directory)
                    return true
                }
                try DurableFile.makeFolder(directory)
                try DurableFile.replace("\(stream)", in: directory, with: file)
                return true
            } catch {
                return false
            }
        }
    }

    /// Removes a stream's picture without waiting for the disk.
    func remove(_ stream: StreamID) {
        queue.async { [directory] in try? DurableFile.remove("\(stream)", from: directory) }
    }

    /// Runs file operations on the queue, in the order in which an actor asks for them.
    ///
    /// Isolated to the caller: elsewhere, two calls of one actor could reach the queue in the other order.
    private func run<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        await withCheckedContinuation(isolation: isolation) { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}
