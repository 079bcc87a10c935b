private import CCrypto

/// An in-memory file of OpenSSL, which its PEM readers and writers require.
///
/// The written data may be a key, so the file uses memory that OpenSSL wipes
/// (https://docs.openssl.org/3.0/man3/BIO_s_mem/).
@safe
struct MemoryFile: ~Copyable {
    private let file: OpaquePointer

    init() throws(RSAKeyError) {
        OpenSSL.prepare()
        guard let file = unsafe BIO_new(BIO_s_secmem()) else { throw .libraryFailure(call: "BIO_new") }
        unsafe self.file = unsafe file
    }

    /// Reads bytes in place; they must outlive the file.
    @unsafe
    init(reading bytes: UnsafeRawBufferPointer) throws(RSAKeyError) {
        OpenSSL.prepare()
        guard let start = bytes.baseAddress, let file = unsafe BIO_new_mem_buf(start, Int32(clamping: bytes.count))
        else { throw .unreadable }
        unsafe self.file = unsafe file
    }

    deinit {
        unsafe BIO_free_all(file)
    }

    func readPrivateKey() throws(RSAKeyError) -> KeyHandle {
        // Without a callback, OpenSSL would ask the terminal for the password of an encrypted key.
        guard let key = unsafe PEM_read_bio_PrivateKey(file, nil, { _, _, _, _ in -1 }, nil) else {
            ERR_clear_error()
            throw .unreadable
        }
        return unsafe KeyHandle(key)
    }

    func write(_ key: KeyHandle) throws(RSAKeyError) {
        let result = unsafe key.withPointer { key in
            unsafe PEM_write_bio_PrivateKey(file, key, nil, nil, 0, nil, nil)
        }
        guard LibCrypto.isSuccess(result) else { throw .libraryFailure(call: "PEM_write_bio_PrivateKey") }
    }

    /// Returns all data that was written and not yet read.
    func content() -> Secret {
        Secret(capacity: unsafe BIO_ctrl_pending(file)) { buffer in
            let count = unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe BIO_read(file, buffer.baseAddress, Int32(buffer.count))
            }
            return max(0, Int(count))
        }
    }
}
