import Foundation
import Testing

@testable import Store

@Suite struct `A data directory` {
    /// Opens and closes it.
    private func path(of directory: String) throws -> String {
        let opened = try DataDirectory(path: directory)
        return opened.path
    }

    /// Why it cannot be opened; nil if it can.
    private func refusal(of directory: String) -> String? {
        do throws(StoreOpenError) {
            _ = try DataDirectory(path: directory)
            return nil
        } catch {
            return error.description
        }
    }

    private func permissions(of path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    private func setPermissions(_ permissions: Int, of path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
    }

    @Test(arguments: ["", "/"])
    func `is made with all above it, for its owner alone`(end: String) async throws {
        try await withDirectory { directory in
            let inner = try path(of: directory + "/one/two/three" + end)
            #expect(inner.hasSuffix("/one/two/three"))
            for name in ["/one", "/one/two", "/one/two/three"] {
                #expect(try permissions(of: directory + name) == 0o700)
            }
            let lock = try permissions(of: directory + "/one/two/three/" + DataDirectory.lockName)
            #expect(lock == 0o600)
        }
    }

    @Test func `is no file`() async throws {
        try await withDirectory { directory in
            let file = directory + "/file"
            try Data("text".utf8).write(to: URL(fileURLWithPath: file))
            for path in [file, file + "/inside"] {
                let words = try #require(refusal(of: path))
                #expect(words.hasPrefix("cannot create the data directory \(path): Not a directory"))
            }
            // What is there is left as it is.
            #expect(FileManager.default.contents(atPath: file) == Data("text".utf8))
        }
    }

    @Test func `may be a link, of which the end is named, but not one to nothing`() async throws {
        try await withDirectory { directory in
            let target = directory + "/target"
            let real = try path(of: target)
            try FileManager.default.createSymbolicLink(
                atPath: directory + "/link", withDestinationPath: target)
            #expect(try path(of: directory + "/link") == real)
            try FileManager.default.createSymbolicLink(
                atPath: directory + "/broken", withDestinationPath: directory + "/nothing")
            let words = try #require(refusal(of: directory + "/broken"))
            #expect(words.contains("No such file or directory"))
            #expect(!FileManager.default.fileExists(atPath: directory + "/nothing"))
        }
    }

    /// Only what is read by people: the kernel holds the lock, and a process that died leaves its number.
    @Test func `names the process that has it, whatever an earlier one has left`() async throws {
        try await withDirectory { directory in
            let lock = directory + "/" + DataDirectory.lockName
            try Data("1234567890123456789 and more than a number\n".utf8)
                .write(to: URL(fileURLWithPath: lock))
            _ = try path(of: directory)
            let text = FileManager.default.contents(atPath: lock).map { String(decoding: $0, as: UTF8.self) }
            #expect(text == "\(ProcessInfo.processInfo.processIdentifier)\n")
            // The lock is free once the directory is closed.
            #expect(refusal(of: directory) == nil)
        }
    }

    @Test(arguments: [(0o700, false), (0o701, true), (0o750, true), (0o755, true)])
    func `tells whether others may look into it`(permissions: Int, isOpen: Bool) async throws {
        try await withDirectory { directory in
            try setPermissions(permissions, of: directory)
            let opened = try DataDirectory(path: directory)
            let isOpenToOthers = opened.isOpenToOthers
            #expect(isOpenToOthers == isOpen)
            // It is the operator's, who may have a reason.
            #expect(try self.permissions(of: directory) == permissions)
        }
    }

    @Test func `keeps a file and its log from others, whoever made them`() async throws {
        try await withDirectory { directory in
            for name in ["old", "old-wal"] {
                try Data("text".utf8).write(to: URL(fileURLWithPath: directory + "/" + name))
                try setPermissions(0o644, of: directory + "/" + name)
            }
            let opened = try DataDirectory(path: directory)
            opened.reserve("old")
            opened.reserve("new")
            for name in ["old", "old-wal", "new"] {
                #expect(try permissions(of: directory + "/" + name) == 0o600)
            }
            // Nothing of the old file is lost, and no log is made.
            #expect(FileManager.default.contents(atPath: directory + "/old") == Data("text".utf8))
            for name in ["old-shm", "new-wal", "new-shm"] {
                #expect(!FileManager.default.fileExists(atPath: directory + "/" + name))
            }
        }
    }
}
