import Foundation
import Store
import Synchronization
import Testing

@testable import Recordings

@Suite struct `A file of a recording` {
    @Test func `ends before it takes what is to stay free, whether or not a moment is said to be good`()
        async throws
    {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let failures = Mutex<[FileError]>([])
        let file = RecordingFile(reserve: .max) { failure in failures.withLock { $0.append(failure) } }
        file.begin(directory.appendingPathComponent("a.webm").path, "webm")
        for index in 0..<20 as Range<UInt64> {
            file.write([UInt8](repeating: 0, count: 1 << 20), at: index << 20)
            // One after the other, as from a transcoder.
            await file.settled()
        }
        #expect(failures.withLock { $0.count } == 1)
        #expect(file.status.written <= 5 << 20)
        _ = await file.close()
    }
}
