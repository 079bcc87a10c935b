package import Base

/// Turns the content of a key ring's file into the text of the ring and back, for a file that is not plain text.
///
/// Both calls can block for as long as a request to another machine takes.
package protocol KeyRingWrapping: Sendable {
    /// Returns the text of the ring, or the Base64 of the text. `content` is `nil` if there is no file.
    func unwrap(_ content: Secret?) throws(FileError) -> Secret

    /// Returns the content of the file for the text of a ring.
    func wrap(_ text: Secret) throws(FileError) -> Secret
}
