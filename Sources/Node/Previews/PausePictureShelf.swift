import Base
import Dispatch
import Foundation
import Glibc
import Store

/// The pause pictures that hosts chose, on the disk: a file for each stream.
///
/// Used by one queue; nothing here may hold up an actor.
final class PausePictureShelf: Sendable {
    private let directory: String
    private let queue = DispatchQueue(label: "pause-pictures", qos: .utility)

    /// - Parameter directory: made when it is missing.
    init(directory: String) {
        self.directory = directory
    }

    /// All that there are, as far as there is room for them.
    /// - Parameter limit: bytes of one of them.
    func load(limit: Int, total: Int) async -> [StreamID: [UInt8]] {
        await run { [directory] in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
            var pictures: [StreamID: [UInt8]] = [:]
            var room = total
            for name in names.sorted() {
                let path = "\(directory)/\(name)"
                // A draft that was never finished.
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

    /// Remembers a stream's picture; nil removes it.
    /// - Returns: whether that is durable.
    func set(_ file: [UInt8]?, of stream: StreamID) async -> Bool {
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

    /// Removes a stream's picture, soon: nobody waits for that.
    func remove(_ stream: StreamID) {
        queue.async { [directory] in try? DurableFile.remove("\(stream)", from: directory) }
    }

    private func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}
