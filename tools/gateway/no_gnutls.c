/* no_gnutls.c - in GnuTLS's place where libraries are linked statically (TECTUM_STATIC).
 *
 * Debian's libmicrohttpd.a wants GnuTLS, which has no static library there. The port of
 * act_server.c has no TLS, so of these only the first two are ever called: when the library begins
 * and ends. */

int gnutls_global_init(void);
void gnutls_global_deinit(void);

int gnutls_global_init(void)
{
    return 0;
}

void gnutls_global_deinit(void)
{
}

/* The rest answers that it is not there, as gnutls.h numbers it. */
enum { UNIMPLEMENTED = -1250 };

#define MISSING(name)         \
    int gnutls_##name(void);  \
    int gnutls_##name(void)   \
    {                         \
        return UNIMPLEMENTED; \
    }
MISSING(alpn_set_protocols)
MISSING(bye)
MISSING(certificate_allocate_credentials)
MISSING(certificate_free_credentials)
MISSING(certificate_server_set_request)
MISSING(certificate_set_dh_params)
MISSING(certificate_set_retrieve_function2)
MISSING(certificate_set_retrieve_function3)
MISSING(certificate_set_x509_key_mem)
MISSING(certificate_set_x509_key_mem2)
MISSING(certificate_set_x509_trust_mem)
MISSING(cipher_get)
MISSING(credentials_set)
MISSING(deinit)
MISSING(dh_params_deinit)
MISSING(dh_params_import_pkcs3)
MISSING(dh_params_init)
MISSING(handshake)
MISSING(init)
MISSING(priority_deinit)
MISSING(priority_init)
MISSING(priority_set)
MISSING(protocol_get_version)
MISSING(psk_allocate_server_credentials)
MISSING(psk_free_server_credentials)
MISSING(psk_set_server_credentials_function)
MISSING(record_check_pending)
MISSING(record_get_direction)
MISSING(record_recv)
MISSING(record_send)
MISSING(session_get_ptr)
MISSING(session_set_ptr)
MISSING(transport_set_int2)

const char *gnutls_strerror(int error);
const char *gnutls_strerror(int error)
{
    (void)error;
    return "there is no TLS in this program";
}

/* A pointer to a function there. */
extern void *(*gnutls_malloc)(__SIZE_TYPE__ size);
void *(*gnutls_malloc)(__SIZE_TYPE__ size);
