import Base
import Foundation
import Synchronization
import Testing

@testable import Gateway

@Suite(.timeLimit(.minutes(1))) struct HTTPServerTests {
    @Test(arguments: HTTPMethod.allCases)
    func `delivers every method`(_ method: HTTPMethod) async throws {
        try await withServer { server in
            let client = try RawClient(server.address)
            let hasBody = [.post, .put, .patch].contains(method)
            let body = hasBody ? "Content-Length: 5\r\n\r\nhello" : "\r\n"
            try await client.send("\(method.rawValue) /a/b?x=1&y=a%26b HTTP/1.1\r\nHost: h\r\n\(body)")
            let response = try await client.response(toHead: method == .head)
            #expect(response.status == 200)
            let expected = "\(method.rawValue)\n/a/b\nx=1&y=a&b\n\(hasBody ? "hello" : "")"
            #expect(response.headers["content-length"] == "\(expected.utf8.count)")
            if method != .head { #expect(response.text == expected) }
        }
    }
}
