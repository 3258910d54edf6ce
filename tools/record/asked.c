/* asked.c - judges, opens and closes what --record and --view ask for. */
#include "tools/record/asked.h"

#include "base/out_file.h"

enum tec_status tec_recording_asked_check(const struct tec_recording_asked *asked,
                                          struct tec_error *err)
{
    int64_t port;
    if (asked->mib && !asked->file)
        return tec_fail(err, TEC_INVALID, "--record-mib: needs --record FILE.mcap");
    if (asked->origin && !asked->view)
        return tec_fail(err, TEC_INVALID, "--view-origin: needs --view PORT");
    if (asked->view)
        TEC_TRY(tec_view_read_port(&port, asked->view, err));
    return asked->file ? tec_context(err, tec_outfile_file_check(asked->file, err), "--record")
                       : TEC_OK;
}

enum tec_status tec_recording_asked_open(struct tec_recording **recording, struct tec_view **view,
                                         const struct tec_recording_asked *asked,
                                         const struct tec_view_afar *afar,
                                         const struct tec_recording_options *options,
                                         struct tec_error *err)
{
    struct tec_recording_options all = *options;
    all.path = asked->file;
    all.limit_mib = asked->mib;
    if (asked->file)
        TEC_TRY(tec_recording_open(recording, &all, err));
    return asked->view ? tec_view_of_option(view, asked->view, asked->origin, afar, &all, err)
                       : TEC_OK;
}

enum tec_status tec_recording_asked_close(struct tec_recording *recording, struct tec_view *view,
                                          enum tec_status status, struct tec_error *err)
{
    struct tec_error second;
    tec_view_close(view);
    enum tec_status recorded = tec_recording_close(recording, status == TEC_OK ? err : &second);
    return status == TEC_OK ? recorded : status;
}
