import Base
import Recordings

extension RecordingEntry {
    /// The path of the file in the API; nil before there is one.
    package var url: String? { fileName.map { "/v1/streams/\(stream)/recordings/\($0)" } }

    /// As the API says it, with the address.
    var json: JSON { json(url: url) }
}
