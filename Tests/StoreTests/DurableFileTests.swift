import Foundation
import Glibc
import Store
import Testing

@Suite final class DurableFileTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] }

    private func bytes(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: "\(folder)/\(name)").map { Array($0) }
    }

    @Test func `holds what is new, and leaves no draft`() throws {
        try DurableFile.makeFolder(folder)
        try DurableFile.makeFolder(folder)
        let long = [UInt8](repeating: 7, count: 3 << 20)
        for content in [[], [1, 2, 3], long, [4]] as [[UInt8]] {
            try DurableFile.replace("a", in: folder, with: content)
            #expect(bytes("a") == content)
        }
        #expect(names == ["a"])
    }

    @Test func `holds what it held where it cannot be replaced`() throws {
        try DurableFile.makeFolder(folder)
        // Where the draft would be, there is a folder.
        try DurableFile.replace("a", in: folder, with: [1])
        try DurableFile.makeFolder("\(folder)/.a")
        #expect(throws: FileError(code: EISDIR)) { try DurableFile.replace("a", in: folder, with: [2]) }
        #expect(bytes("a") == [1])
        // Its name is taken by a folder: the draft goes again.
        try DurableFile.makeFolder("\(folder)/b")
        #expect(throws: FileError(code: EISDIR)) { try DurableFile.replace("b", in: folder, with: [2]) }
        #expect(names.sorted() == [".a", "a", "b"])
    }

    @Test func `is gone once it was removed`() throws {
        try DurableFile.makeFolder(folder)
        try DurableFile.replace("a", in: folder, with: [1])
        try DurableFile.remove("a", from: folder)
        try DurableFile.remove("a", from: folder)
        #expect(names.isEmpty)
    }

    @Test func `needs its folder`() {
        #expect(throws: FileError(code: ENOENT)) { try DurableFile.replace("a", in: folder, with: [1]) }
        #expect(throws: FileError(code: ENOENT)) { try DurableFile.sync(folder) }
        #expect(throws: FileError(code: ENOENT)) { try DurableFile.makeFolder("\(folder)/a") }
    }

    @Test(arguments: [(ENOSPC, true), (EDQUOT, true), (EIO, false)])
    func `tells a disk that is full from others`(code: CInt, isFull: Bool) {
        #expect(FileError(code: code).isFull == isFull)
        #expect(!FileError(code: code).text.isEmpty)
    }
}
